-- Adds payment attempts. Guarded by their ids and by the provider's transaction. Fewer rows: a purchase is not there.
-- Index: purchase_by_id; writes the primary key and payment_by_purchase.
INSERT INTO payment (id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at,
    revision)
SELECT c.id, p.seq, c.provider, c.amount, c.currency, c.status, c.provider_transaction, c.created_at, c.updated_at,
    c.revision
FROM unnest($1::UUID[], $2::UUID[], $3::TEXT[], $4::BIGINT[], $5::SMALLINT[], $6::SMALLINT[], $7::TEXT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[])
    AS c (id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at, revision)
JOIN purchase AS p ON p.id = c.purchase;
