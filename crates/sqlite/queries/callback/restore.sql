-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO callback (provider, event, payload_hash, payload, received_at)
VALUES (:provider, :event, :payload_hash, :payload, :received_at);
