-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    purchase::BIGINT, status::BIGINT, attempts::BIGINT, last_result, created_at::BIGINT, updated_at::BIGINT,
    revision::BIGINT
FROM compensation_task
WHERE compensation_task.purchase > $1::BIGINT
ORDER BY compensation_task.purchase LIMIT $2::BIGINT;
