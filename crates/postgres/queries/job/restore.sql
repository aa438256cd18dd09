-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO job (
    seq, id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error,
    is_refunded, is_reclaimed, created_at, updated_at, revision)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.id, d.account, d.cost, d.max_attempts, d.payload, d.status, d.attempts, d.not_before, d.token, d.worker,
    d.last_error, d.is_refunded <> 0, d.is_reclaimed <> 0, d.created_at, d.updated_at, d.revision
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[], $11::TEXT[], $12::TEXT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[], $16::BIGINT[],
    $17::BIGINT[])
    WITH ORDINALITY AS d (
        seq, id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error,
        is_refunded, is_reclaimed, created_at, updated_at, revision, ord)
ORDER BY d.ord;
