-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, kind::BIGINT, subject, detail, at::BIGINT
FROM open_case
WHERE open_case.seq > $1::BIGINT
ORDER BY open_case.seq LIMIT $2::BIGINT;
