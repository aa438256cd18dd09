-- Reads the version of the tables. One row; its value is 0 where none was carried out. Index: the primary key, backwards.
SELECT coalesce(max(version), 0) FROM onceward_migration;
