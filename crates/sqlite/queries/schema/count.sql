-- Counts what is in a file, to tell an empty one from somebody else's. One row. Index: none.
SELECT count(*) FROM sqlite_schema;
