-- Locks SKUs, by number. Guards the decision that follows: stock and places move under it. Rows that are not there are missing.
-- Index: the primary key.
SELECT 1 FROM sku WHERE sku_ref = ANY ($1::INTEGER[]) ORDER BY sku_ref FOR NO KEY UPDATE;
