-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO word (word_ref, text)
VALUES (:word_ref, :text);
