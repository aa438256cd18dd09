-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT key, fingerprint, status, body, at, lasting FROM answer WHERE key > :key ORDER BY key LIMIT :limit;
