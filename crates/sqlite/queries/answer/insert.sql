-- Keeps the first answer to a request. Guarded by the primary key. Zero rows cannot be: it is added, or a constraint
-- refuses it. Index: writes the one on the key, and answer_by_age where it is not lasting.
INSERT INTO answer (key, fingerprint, status, body, at, lasting)
VALUES (:key, :fingerprint, :status, :body, :at, :lasting);
