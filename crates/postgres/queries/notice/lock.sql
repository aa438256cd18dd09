-- Locks notices, by id. Guards the decision that follows. Rows that are not there are missing. Index: the one on the id.
SELECT 1 FROM notice WHERE id = ANY ($1::UUID[]) ORDER BY id FOR NO KEY UPDATE;
