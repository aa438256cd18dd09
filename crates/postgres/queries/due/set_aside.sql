-- Adds parts of held members to the exhausted set, under the tokens that met them. Guarded by due_once, and by the look at the
-- claims (due/held.sql). Fewer rows: some are there already, and nothing happens. Index: writes all three.
INSERT INTO due (lane, member, due_at, created_at, attempts, token, leased, body)
SELECT c.dead, c.member, $5, $5, 0, c.token, FALSE, c.body
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::BYTEA[]) WITH ORDINALITY AS c (dead, member, token, body, ord)
ORDER BY c.ord
ON CONFLICT (lane, member) DO NOTHING;
