-- Keeps callbacks. Guarded by provider and event. Fewer rows: one is kept already, and nothing happens.
-- Index: writes the primary key.
INSERT INTO callback (provider, event, payload_hash, payload, received_at)
SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BYTEA[], $4::BYTEA[], $5::BIGINT[])
ON CONFLICT (provider, event) DO NOTHING;
