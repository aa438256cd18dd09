-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO lane (lane, paused, last_claim)
VALUES (:lane, :paused, :last_claim);
