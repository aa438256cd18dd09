-- Adds or replaces an activity. Guards nothing: the decision has compared. Zero rows cannot be. Index: the primary key.
INSERT INTO activity (
    id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel, late_payment,
    cancelled_frees_limit
) VALUES (
    :id, :name, :starts_at, :ends_at, :payment_window, :cancel_grace, :reservation_deadline, :confirm_after_cancel,
    :late_payment, :cancelled_frees_limit
)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    payment_window = excluded.payment_window, cancel_grace = excluded.cancel_grace,
    reservation_deadline = excluded.reservation_deadline, confirm_after_cancel = excluded.confirm_after_cancel,
    late_payment = excluded.late_payment, cancelled_frees_limit = excluded.cancelled_frees_limit;
