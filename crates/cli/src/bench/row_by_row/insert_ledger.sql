-- Books a movement of stock. Zero rows: it is booked already. Guarded by the unique idempotency key.
INSERT INTO inventory_ledger (
    activity_id, sku_id, reservation_id, order_id, entry_type, quantity, idempotency_key
)
VALUES ($1, $2, $3, $4, 'OCCUPY', 1, 'OCCUPY:' || $3::UUID)
ON CONFLICT (idempotency_key) DO NOTHING;
