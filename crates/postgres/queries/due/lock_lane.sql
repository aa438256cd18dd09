-- Lets claims of a lane go on side by side and makes a pause wait for them, and them for it; until the transaction ends. One
-- row. Index: none.
SELECT pg_advisory_xact_lock_shared($1, $2);
