-- Removes members whoever holds them. Guards nothing. Fewer rows: some are gone already, and nothing happens.
-- Index: due_once.
DELETE FROM due AS d
USING unnest($1::INTEGER[], $2::TEXT[]) AS c (lane, member)
WHERE d.lane = c.lane AND d.member = c.member;
