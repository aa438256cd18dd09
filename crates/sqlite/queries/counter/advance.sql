-- Takes the next so many numbers of a counter; they are never given out again. One row: the last of them. Zero rows: the
-- counter is not there, which the first migration rules out. Index: the primary key.
UPDATE counter SET value = value + :count WHERE name = :name RETURNING value;
