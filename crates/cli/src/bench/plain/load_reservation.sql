-- The reservation's state before deciding; the transaction holds the write lock, so it cannot change. By primary key.
SELECT status, order_id
FROM inventory_reservation
WHERE reservation_id = ?1;
