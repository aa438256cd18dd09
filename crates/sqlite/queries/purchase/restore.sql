-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO purchase (
    seq, id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason,
    reserved_at, business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price, total,
    paid, refunded, created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason, compensation)
VALUES (
    :seq, :id, :revision, :user_id, :request_id, :route, :sku_ref, :quantity, :place, :admission, :reservation,
    :reason, :reserved_at, :business_deadline, :updated_at, :inbox_result, :payload_hash, :order_status, :currency,
    :unit_price, :total, :paid, :refunded, :created_at, :expires_at, :cancel_due_at, :paid_at, :cancelled_at,
    :cancel_reason, :compensation);
