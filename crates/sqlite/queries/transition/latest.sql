-- Reads the time of the newest line of history, so that time goes on from there after a restart. One row; its value is
-- NULL in an empty store. Index: the primary key, backwards.
SELECT (SELECT at FROM transition ORDER BY seq DESC LIMIT 1);
