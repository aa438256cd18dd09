-- Adds a line of a group's history. Guards nothing: it rides with the guarded change it tells of. Zero rows cannot be.
-- Index: writes group_transition_by_group.
INSERT INTO group_transition (group_ref, at, from_state, to_state, cause, actor)
VALUES (:group_ref, :at, :from_state, :to_state, :cause, :actor);
