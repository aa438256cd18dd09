-- Moves a reservation from one state to another. Zero rows: it is not in the state it should leave. By primary key.
UPDATE inventory_reservation
SET status      = ?3,
    order_id    = ?4,
    reason_code = ?5,
    version     = version + 1,
    updated_at  = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE reservation_id = ?1
  AND status = ?2;
