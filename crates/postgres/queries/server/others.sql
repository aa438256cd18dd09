-- Counts the other sessions of this program in the database. One row. Index: none.
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid();
