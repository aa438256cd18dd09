-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the one by member.
SELECT
    lane, member, seq, due_at, created_at, attempts, token, leased, body
FROM due
WHERE (lane, member) > (:lane, :member)
ORDER BY lane, member
LIMIT :limit;
