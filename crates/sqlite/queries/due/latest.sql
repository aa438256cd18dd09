-- Reads the time at which the newest member was put in, so that time goes on from there after a restart. One row; its
-- value is NULL where there is none. Index: the primary key, backwards.
SELECT (SELECT created_at FROM due ORDER BY seq DESC LIMIT 1);
