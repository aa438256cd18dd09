-- Adds purchases, in their order. Guarded by purchase_by_id (the id is new) and purchase_by_place (nobody holds the place).
-- As many rows as purchases, or a constraint refuses them. Index: writes all.
INSERT INTO purchase (
    id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason, reserved_at,
    business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price, total, paid,
    refunded, created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason, compensation
)
SELECT c.id, c.revision, c.user_id, c.request_id, c.route, c.sku_ref, c.quantity, c.place, c.admission, c.reservation,
    c.reason, c.reserved_at, c.business_deadline, c.updated_at, c.inbox_result, c.payload_hash, c.order_status, c.currency,
    c.unit_price, c.total, c.paid, c.refunded, c.created_at, c.expires_at, c.cancel_due_at, c.paid_at, c.cancelled_at,
    c.cancel_reason, c.compensation
FROM unnest(
    $1::UUID[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::SMALLINT[], $6::INTEGER[], $7::BIGINT[], $8::BIGINT[],
    $9::SMALLINT[], $10::SMALLINT[], $11::SMALLINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::SMALLINT[],
    $16::BYTEA[], $17::SMALLINT[], $18::SMALLINT[], $19::BIGINT[], $20::BIGINT[], $21::BIGINT[], $22::BIGINT[],
    $23::BIGINT[], $24::BIGINT[], $25::BIGINT[], $26::BIGINT[], $27::BIGINT[], $28::TEXT[], $29::UUID[]) WITH ORDINALITY
    AS c (id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason, reserved_at,
    business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price, total, paid, refunded,
    created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason, compensation, ord)
ORDER BY c.ord;
