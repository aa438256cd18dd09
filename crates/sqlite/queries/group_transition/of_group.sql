-- Lists the history of a group order, oldest first. Guards nothing. Zero rows: nothing happened since it was made.
-- Index: group_transition_by_group.
SELECT t.at, t.from_state, t.to_state, t.cause, t.actor
FROM group_transition AS t
WHERE t.group_ref = :group_ref
ORDER BY t.seq;
