-- Moves the order, and with it, where it is said, the reservation. Guard: the revision it was decided on, and the place it has.
-- Zero rows: the place moves too (purchase/move_place.sql comes first, then this again), or the guard is lost; the caller
-- reads what is there. Index: the primary key; writes purchase_by_expiry.
UPDATE purchase SET
    reservation = coalesce(:reservation, reservation), order_status = :order_status, currency = :currency,
    total = nullif(:total, unit_price * quantity), paid = :paid, refunded = :refunded, created_at = :created_at,
    expires_at = :expires_at, cancel_due_at = :cancel_due_at, paid_at = :paid_at, cancelled_at = :cancelled_at,
    cancel_reason = :cancel_reason, updated_at = :at, revision = revision + 1
WHERE seq = :seq AND id = :id AND revision = :revision AND place IS :place;
