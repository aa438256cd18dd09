-- Makes the reservation known. Zero rows: it is known already, and its state decides. Guarded by the primary key.
INSERT INTO inventory_reservation (
    reservation_id, request_id, activity_id, sku_id, user_id, message_id, status, reserved_at, business_deadline
)
VALUES (
    $1, $2, $3, $4, $5, $6, 'RESERVED', to_timestamp($7::BIGINT / 1000.0), to_timestamp($8::BIGINT / 1000.0)
)
ON CONFLICT (reservation_id) DO NOTHING;
