-- Locks admission's counters, by number. Guards the decision that follows. Rows that are not there are missing.
-- Index: the primary key.
SELECT 1 FROM bucket WHERE sku_ref = ANY ($1::INTEGER[]) ORDER BY sku_ref FOR NO KEY UPDATE;
