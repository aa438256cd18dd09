-- Keeps two transactions from putting one activity at once, also one that is not there yet. Guards the decision that follows.
-- As many rows as ids. Index: none.
SELECT pg_advisory_xact_lock(k.key)
FROM (SELECT hashtextextended('activity/' || id, 0) AS key FROM unnest($1::TEXT[]) AS id ORDER BY key) AS k;
