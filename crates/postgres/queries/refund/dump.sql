-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    uuid_send(id) AS id, purchase::BIGINT, uuid_send(payment) AS payment, amount::BIGINT, currency::BIGINT,
    status::BIGINT, cause::BIGINT, reason, created_at::BIGINT, updated_at::BIGINT, revision::BIGINT
FROM refund
WHERE refund.id > encode($1::BYTEA, 'hex')::UUID
ORDER BY refund.id LIMIT $2::BIGINT;
