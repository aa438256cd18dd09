-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, message_id, payload_hash, reason, payload, at::BIGINT
FROM quarantine
WHERE quarantine.seq > $1::BIGINT
ORDER BY quarantine.seq LIMIT $2::BIGINT;
