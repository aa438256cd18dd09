-- Waits until no claim of a lane is under way, and keeps new ones waiting until the transaction ends. One row. Index: none.
SELECT pg_advisory_xact_lock($1, $2);
