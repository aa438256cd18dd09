-- Adds a line of history. Guards nothing: it rides with the guarded change it tells of. Zero rows cannot be.
-- Index: writes transition_by_purchase.
INSERT INTO transition (purchase, at, kind, from_state, to_state, cause, actor, reference)
VALUES (:purchase, :at, :kind, :from_state, :to_state, :cause, :actor, :reference);
