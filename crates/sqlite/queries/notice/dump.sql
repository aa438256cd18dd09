-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, id, kind, subject, recipient, detail, status, created_at, updated_at, revision
FROM notice
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
