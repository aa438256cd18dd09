-- Looks whether the tokens still hold these members. Fewer rows: a claim is lost; the caller reads what is there.
-- Index: due_once.
SELECT 1
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[]) AS c (lane, member, token)
JOIN due AS d ON d.lane = c.lane AND d.member = c.member AND d.token = c.token AND d.leased
ORDER BY d.lane, d.seq
FOR UPDATE OF d;
