-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO notice (seq, id, kind, subject, recipient, detail, status, created_at, updated_at, revision)
VALUES (:seq, :id, :kind, :subject, :recipient, :detail, :status, :created_at, :updated_at, :revision);
