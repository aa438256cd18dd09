-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO open_case (seq, kind, subject, detail, at)
VALUES (:seq, :kind, :subject, :detail, :at);
