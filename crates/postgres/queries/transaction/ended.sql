-- Waits until a transaction has ended, or the lock time-out is over. One row. Index: none.
SELECT pg_advisory_xact_lock_shared($1);
