-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO quarantine (seq, message_id, payload_hash, reason, payload, at)
VALUES (:seq, :message_id, :payload_hash, :reason, :payload, :at);
