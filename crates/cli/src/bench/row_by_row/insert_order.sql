-- Makes the order. Zero rows: the user has one of this SKU already. Guarded by uq_orders_activity_sku_user.
INSERT INTO orders (order_id, activity_id, sku_id, user_id, request_id, reservation_id, status)
VALUES ($1, $2, $3, $4, $5, $6, 'CREATED')
ON CONFLICT (activity_id, sku_id, user_id) DO NOTHING
RETURNING order_id;
