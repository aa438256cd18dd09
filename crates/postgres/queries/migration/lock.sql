-- Lets one process migrate at a time, until its session ends. One row. Index: none.
SELECT pg_advisory_lock($1);
