-- Locks members of due work, by lane and arrival. Guards the decision that follows. Rows that are not there are missing.
-- Index: due_once.
SELECT 1
FROM unnest($1::INTEGER[], $2::TEXT[]) AS k (lane, member)
JOIN due AS d ON d.lane = k.lane AND d.member = k.member
ORDER BY d.lane, d.seq
FOR UPDATE OF d;
