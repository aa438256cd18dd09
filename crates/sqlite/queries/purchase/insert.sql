-- Adds a purchase. Guarded by purchase_by_id (the id is new) and purchase_by_place (nobody holds the place).
-- Zero rows cannot be: it is added, or a constraint refuses it. Index: writes both.
INSERT INTO purchase (
    id, revision, user_id, request_id, route, sku_ref, quantity, place, admission, reservation, reason, reserved_at,
    business_deadline, updated_at, inbox_result, payload_hash, order_status, currency, unit_price, total, paid,
    refunded, created_at, expires_at, cancel_due_at, paid_at, cancelled_at, cancel_reason, compensation
) VALUES (
    :id, :revision, :user_id, :request_id, :route, :sku_ref, :quantity, :place, :admission, :reservation, :reason,
    :reserved_at, :business_deadline, :updated_at, :inbox_result, :payload_hash, :order_status, :currency, :unit_price,
    nullif(:total, :unit_price * :quantity), :paid, :refunded, :created_at, :expires_at, :cancel_due_at, :paid_at,
    :cancelled_at, :cancel_reason, :compensation
);
