-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision
FROM refund
WHERE id > :id
ORDER BY id
LIMIT :limit;
