-- Reads what is there when a guard is lost, for the operator. Zero rows: the bucket was never opened.
-- Index: the primary key.
SELECT revision FROM bucket WHERE sku_ref = $1;
