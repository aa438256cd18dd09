-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO refund (
    id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision)
SELECT
    encode(d.id, 'hex')::UUID, d.purchase, encode(d.payment, 'hex')::UUID, d.amount, d.currency, d.status, d.cause,
    d.reason, d.created_at, d.updated_at, d.revision
FROM unnest(
    $1::BYTEA[], $2::BIGINT[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::TEXT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[])
    WITH ORDINALITY AS d (
        id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision, ord)
ORDER BY d.ord;
