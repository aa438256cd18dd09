-- Keeps a callback. Guarded by provider and event. Zero rows: it is kept already, and nothing happens.
-- Index: writes the primary key.
INSERT INTO callback (provider, event, payload_hash, payload, received_at)
VALUES (:provider, :event, :payload_hash, :payload, :received_at)
ON CONFLICT (provider, event) DO NOTHING;
