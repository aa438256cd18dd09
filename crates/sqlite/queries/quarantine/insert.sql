-- Sets a message aside. Guarded by the uniqueness of id and hash. Zero rows: it was set aside before, and nothing happens.
-- Index: writes the one on id and hash.
INSERT INTO quarantine (message_id, payload_hash, reason, payload, at)
VALUES (:message_id, :payload_hash, :reason, :payload, :at)
ON CONFLICT (message_id, payload_hash) DO NOTHING;
