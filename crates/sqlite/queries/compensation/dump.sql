-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    purchase, status, attempts, last_result, created_at, updated_at, revision
FROM compensation_task
WHERE purchase > :purchase
ORDER BY purchase
LIMIT :limit;
