-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, id, leader, deadline, charge_via, currency, min_participants, status, participants, attempts, retries,
    next_attempt_at, last_error, created_at, updated_at, revision
FROM group_order
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
