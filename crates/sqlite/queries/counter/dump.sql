-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT name, value FROM counter WHERE name > :name ORDER BY name LIMIT :limit;
