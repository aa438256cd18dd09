-- The reservation's state before deciding, locked. By primary key.
SELECT status FROM inventory_reservation WHERE reservation_id = $1 FOR UPDATE;
