-- Loads admission's counters. Guards nothing. Rows that are not there were never opened. Index: the primary key.
SELECT sku_ref, initial, available, open_reserved, committed, adjustments, revision
FROM bucket WHERE sku_ref = ANY ($1::INTEGER[]);
