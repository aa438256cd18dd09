-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO answer (key, fingerprint, status, body, at, lasting)
VALUES (:key, :fingerprint, :status, :body, :at, :lasting);
