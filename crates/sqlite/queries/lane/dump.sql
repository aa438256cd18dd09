-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT lane, paused, last_claim FROM lane WHERE lane > :lane ORDER BY lane LIMIT :limit;
