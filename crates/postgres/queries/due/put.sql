-- Adds members to lanes, in their order. Guarded by due_once, and by their absence from the exhausted set, which due/twice.sql
-- asks for again. Fewer rows: some are in one of the two already, and nothing happens. Index: due_once; writes all three.
INSERT INTO due (lane, member, due_at, created_at, attempts, token, leased, body)
SELECT c.lane, c.member, c.due_at, $5, 0, 0, FALSE, c.body
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[], $6::INTEGER[]) WITH ORDINALITY
    AS c (lane, member, due_at, body, dead, ord)
WHERE NOT EXISTS (SELECT FROM due AS d WHERE d.lane = c.dead AND d.member = c.member)
ORDER BY c.ord
ON CONFLICT (lane, member) DO NOTHING;
