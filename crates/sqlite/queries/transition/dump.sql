-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, purchase, at, kind, from_state, to_state, cause, actor, reference
FROM transition
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
