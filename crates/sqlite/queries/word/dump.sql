-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT word_ref, text FROM word WHERE word_ref > :word_ref ORDER BY word_ref LIMIT :limit;
