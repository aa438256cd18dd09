-- Reads the time of the newest purchase, so that time goes on from there after a restart. Guards nothing. One row; its
-- value is NULL in an empty store. Index: the primary key, backwards.
SELECT (SELECT updated_at FROM purchase ORDER BY seq DESC LIMIT 1);
