-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, group_ref, at, from_state, to_state, cause, actor
FROM group_transition
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
