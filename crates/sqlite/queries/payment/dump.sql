-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at, revision
FROM payment
WHERE id > :id
ORDER BY id
LIMIT :limit;
