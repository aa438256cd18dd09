-- Locks purchases, by number. Guards the decision that follows. Rows that are not there are missing. Index: purchase_by_id.
SELECT 1 FROM purchase WHERE id = ANY ($1::UUID[]) ORDER BY seq FOR NO KEY UPDATE;
