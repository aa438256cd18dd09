-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    uuid_send(id) AS id, purchase::BIGINT, provider, amount::BIGINT, currency::BIGINT, status::BIGINT,
    provider_transaction, created_at::BIGINT, updated_at::BIGINT, revision::BIGINT
FROM payment
WHERE payment.id > encode($1::BYTEA, 'hex')::UUID
ORDER BY payment.id LIMIT $2::BIGINT;
