-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason,
    reserved_at, business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price, total,
    paid, refunded, created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason, compensation
FROM purchase
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
