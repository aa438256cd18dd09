-- Puts dumped rows back as they were, but for what their entries make. Guarded by their keys and checks. Fewer rows cannot be.
-- Index: writes all of the table.
INSERT INTO credit_account (seq, id, balance, entries, overdraft, created_at, updated_at, revision)
OVERRIDING SYSTEM VALUE
SELECT d.seq, d.id, 0, 0, d.overdraft, d.created_at, d.updated_at, d.revision
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[])
    WITH ORDINALITY AS d (
        seq, id, overdraft, created_at, updated_at, revision, ord)
ORDER BY d.ord;
