-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO transition (seq, purchase, at, kind, from_state, to_state, cause, actor, reference)
VALUES (:seq, :purchase, :at, :kind, :from_state, :to_state, :cause, :actor, :reference);
