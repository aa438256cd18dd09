-- Sets messages aside. Guarded by the uniqueness of id and hash. Fewer rows: one was set aside before, and nothing happens.
-- Index: writes the one on id and hash.
INSERT INTO quarantine (message_id, payload_hash, reason, payload, at)
SELECT * FROM unnest($1::TEXT[], $2::BYTEA[], $3::TEXT[], $4::BYTEA[], $5::BIGINT[])
ON CONFLICT (message_id, payload_hash) DO NOTHING;
