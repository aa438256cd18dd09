-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, id, account::BIGINT, cost::BIGINT, max_attempts::BIGINT, payload, status::BIGINT, attempts::BIGINT,
    not_before::BIGINT, token::BIGINT, worker, last_error, is_refunded::INTEGER::BIGINT,
    is_reclaimed::INTEGER::BIGINT, created_at::BIGINT, updated_at::BIGINT, revision::BIGINT
FROM job
WHERE job.seq > $1::BIGINT
ORDER BY job.seq LIMIT $2::BIGINT;
