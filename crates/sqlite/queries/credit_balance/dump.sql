-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT seq, balance, entries FROM credit_account WHERE seq > :seq ORDER BY seq LIMIT :limit;
