-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    provider, event, payload_hash, payload, received_at::BIGINT
FROM callback
WHERE (callback.provider, callback.event) > ($1::TEXT, $2::TEXT)
ORDER BY callback.provider, callback.event LIMIT $3::BIGINT;
