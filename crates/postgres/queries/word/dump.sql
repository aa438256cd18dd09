-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    word_ref::BIGINT, text
FROM word
WHERE word.word_ref > $1::BIGINT
ORDER BY word.word_ref LIMIT $2::BIGINT;
