-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error,
    is_refunded, is_reclaimed, created_at, updated_at, revision
FROM job
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
