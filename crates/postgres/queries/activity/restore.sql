-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO activity (
    id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel,
    late_payment, cancelled_frees_limit)
SELECT
    d.id, d.name, d.starts_at, d.ends_at, d.payment_window, d.cancel_grace, d.reservation_deadline,
    d.confirm_after_cancel, d.late_payment, d.cancelled_frees_limit <> 0
FROM unnest(
    $1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[])
    WITH ORDINALITY AS d (
        id, name, starts_at, ends_at, payment_window, cancel_grace, reservation_deadline, confirm_after_cancel,
        late_payment, cancelled_frees_limit, ord)
ORDER BY d.ord;
