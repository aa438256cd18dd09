-- Finds the key behind a number; it never changes, so it is asked for once. Zero rows: no such SKU, which a foreign key
-- rules out. Index: the primary key.
SELECT activity_id, sku_id FROM sku WHERE sku_ref = :sku_ref;
