-- Locks group orders, by number. Guards the decision that follows. Rows that are not there are missing. Index: the one of ids.
SELECT 1 FROM group_order WHERE id = ANY ($1::TEXT[]) ORDER BY seq FOR NO KEY UPDATE;
