-- Loads admission's counters for one SKU. Guards nothing. Zero rows: they were never opened. Index: the primary key.
SELECT initial, available, open_reserved, committed, adjustments, revision
FROM bucket WHERE sku_ref = :sku_ref;
