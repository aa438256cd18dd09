-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel,
    late_payment, cancelled_frees_limit
FROM activity
WHERE id > :id
ORDER BY id
LIMIT :limit;
