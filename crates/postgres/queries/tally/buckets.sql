-- Reads every bucket, for the sums. Guards nothing. Zero rows: there is none. Index: none, it reads the table.
SELECT sku_ref, initial, available, open_reserved, committed, adjustments, revision FROM bucket;
