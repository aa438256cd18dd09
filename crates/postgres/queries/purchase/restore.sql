-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO purchase (
    seq, id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason,
    reserved_at, business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price, total,
    paid, refunded, created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason, compensation)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, encode(d.id, 'hex')::UUID, d.revision, d.user_id, d.request_id, d.route, d.sku_ref, d.quantity, d.place,
    d.admission, d.reservation, d.reason, d.reserved_at, d.business_deadline, d.updated_at, d.inbox_result,
    d.payload_hash, d.order_status, d.currency, d.unit_price, d.total, d.paid, d.refunded, d.created_at, d.expires_at,
    d.cancel_due_at, d.paid_at, d.cancelled_at, d.cancel_reason, encode(d.compensation, 'hex')::UUID
FROM unnest(
    $1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[],
    $16::BIGINT[], $17::BYTEA[], $18::BIGINT[], $19::BIGINT[], $20::BIGINT[], $21::BIGINT[], $22::BIGINT[],
    $23::BIGINT[], $24::BIGINT[], $25::BIGINT[], $26::BIGINT[], $27::BIGINT[], $28::BIGINT[], $29::TEXT[],
    $30::BYTEA[])
    WITH ORDINALITY AS d (
        seq, id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason,
        reserved_at, business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price,
        total, paid, refunded, created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason,
        compensation, ord)
ORDER BY d.ord;
