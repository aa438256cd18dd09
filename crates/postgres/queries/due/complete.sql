-- Removes members. Guard: the tokens still hold them. Fewer rows: a claim is lost; the caller reads what is there.
-- Index: due_once.
DELETE FROM due AS d
USING unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[]) AS c (lane, member, token)
WHERE d.lane = c.lane AND d.member = c.member AND d.token = c.token AND d.leased;
