-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO payment (
    id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at, revision)
SELECT
    encode(d.id, 'hex')::UUID, d.purchase, d.provider, d.amount, d.currency, d.status, d.provider_transaction,
    d.created_at, d.updated_at, d.revision
FROM unnest(
    $1::BYTEA[], $2::BIGINT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[])
    WITH ORDINALITY AS d (
        id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at, revision, ord)
ORDER BY d.ord;
