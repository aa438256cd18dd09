-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, uuid_send(id) AS id, kind, subject, recipient, detail, status::BIGINT, created_at::BIGINT,
    updated_at::BIGINT, revision::BIGINT
FROM notice
WHERE notice.seq > $1::BIGINT
ORDER BY notice.seq LIMIT $2::BIGINT;
