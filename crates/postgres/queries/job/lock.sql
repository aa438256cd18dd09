-- Locks jobs, by number. Guards the decision that follows. Rows that are not there are missing. Index: the one on id.
SELECT 1 FROM job WHERE id = ANY ($1::TEXT[]) ORDER BY seq FOR NO KEY UPDATE;
