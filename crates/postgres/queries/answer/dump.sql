-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    key, fingerprint, status::BIGINT, body, at::BIGINT, lasting::INTEGER::BIGINT
FROM answer
WHERE answer.key > $1::TEXT
ORDER BY answer.key LIMIT $2::BIGINT;
