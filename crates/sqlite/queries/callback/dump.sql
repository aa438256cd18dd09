-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    provider, event, payload_hash, payload, received_at
FROM callback
WHERE (provider, event) > (:provider, :event)
ORDER BY provider, event
LIMIT :limit;
