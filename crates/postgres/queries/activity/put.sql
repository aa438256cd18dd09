-- Adds or replaces activities. Guards nothing: the decision has compared, under activity/lock.sql. As many rows as
-- activities. Index: the primary key.
INSERT INTO activity (
    id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel, late_payment,
    cancelled_frees_limit
)
SELECT * FROM unnest(
    $1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::SMALLINT[], $10::BOOLEAN[])
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    payment_window = excluded.payment_window, cancel_grace = excluded.cancel_grace,
    reservation_deadline = excluded.reservation_deadline, confirm_after_cancel = excluded.confirm_after_cancel,
    late_payment = excluded.late_payment, cancelled_frees_limit = excluded.cancelled_frees_limit;
