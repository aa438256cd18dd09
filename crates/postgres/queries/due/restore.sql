-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO due (
    lane, member, seq, due_at, created_at, attempts, token, leased, body)
OVERRIDING SYSTEM VALUE
SELECT
    d.lane, d.member, d.seq, d.due_at, d.created_at, d.attempts, d.token, d.leased <> 0, d.body
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BYTEA[])
    WITH ORDINALITY AS d (
        lane, member, seq, due_at, created_at, attempts, token, leased, body, ord)
ORDER BY d.ord;
