-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT seq, message_id, payload_hash, reason, payload, at FROM quarantine WHERE seq > :seq ORDER BY seq LIMIT :limit;
