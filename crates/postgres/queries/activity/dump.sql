-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    id, name, starts_at::BIGINT, ends_at::BIGINT, payment_window::BIGINT, cancel_grace::BIGINT,
    reservation_deadline::BIGINT, confirm_after_cancel::BIGINT, late_payment::BIGINT,
    cancelled_frees_limit::INTEGER::BIGINT
FROM activity
WHERE activity.id > $1::TEXT
ORDER BY activity.id LIMIT $2::BIGINT;
