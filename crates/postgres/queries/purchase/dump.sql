-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, uuid_send(id) AS id, revision::BIGINT, user_id, request_id, route::BIGINT, sku_ref::BIGINT,
    quantity::BIGINT, place::BIGINT, admission::BIGINT, reservation::BIGINT, reason::BIGINT, reserved_at::BIGINT,
    business_deadline::BIGINT, updated_at::BIGINT, inbox_result::BIGINT, payload_hash, order_status::BIGINT,
    currency::BIGINT, unit_price::BIGINT, total::BIGINT, paid::BIGINT, refunded::BIGINT, created_at::BIGINT,
    expires_at::BIGINT, cancel_due_at::BIGINT, paid_at::BIGINT, cancelled_at::BIGINT, cancel_reason,
    uuid_send(compensation) AS compensation
FROM purchase
WHERE purchase.seq > $1::BIGINT
ORDER BY purchase.seq LIMIT $2::BIGINT;
