-- Loads an activity. Guards nothing. Zero rows: there is no such activity. Index: the primary key.
SELECT name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel, late_payment,
    cancelled_frees_limit
FROM activity WHERE id = :id;
