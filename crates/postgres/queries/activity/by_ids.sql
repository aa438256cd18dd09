-- Loads activities. Guards nothing. Rows that are not there are missing. Index: the primary key.
SELECT id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel, late_payment,
    cancelled_frees_limit
FROM activity WHERE id = ANY ($1::TEXT[]);
