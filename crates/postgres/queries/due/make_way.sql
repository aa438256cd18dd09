-- Clears away what stands under a name where a guarded move is about to put a member. Guards nothing: the move itself is
-- guarded, and takes this back where it is lost. Zero rows: the name is free, as it should be. Index: due_once.
DELETE FROM due AS d
USING unnest($1::INTEGER[], $2::TEXT[]) AS c (lane, member)
WHERE d.lane = c.lane AND d.member = c.member;
