-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, id, leader, deadline::BIGINT, charge_via, currency::BIGINT, min_participants::BIGINT, status::BIGINT,
    participants::BIGINT, attempts::BIGINT, retries::BIGINT, next_attempt_at::BIGINT, last_error, created_at::BIGINT,
    updated_at::BIGINT, revision::BIGINT
FROM group_order
WHERE group_order.seq > $1::BIGINT
ORDER BY group_order.seq LIMIT $2::BIGINT;
