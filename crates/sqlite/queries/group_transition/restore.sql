-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO group_transition (seq, group_ref, at, from_state, to_state, cause, actor)
VALUES (:seq, :group_ref, :at, :from_state, :to_state, :cause, :actor);
