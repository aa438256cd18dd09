-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO activity (
    id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel,
    late_payment, cancelled_frees_limit)
VALUES (
    :id, :name, :starts_at, :ends_at, :payment_window, :cancel_grace, :reservation_deadline, :confirm_after_cancel,
    :late_payment, :cancelled_frees_limit);
