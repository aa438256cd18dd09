-- Finds the number behind a key; it never changes, so it is asked for once. Zero rows: there is no such SKU.
-- Index: the one on the key.
SELECT sku_ref FROM sku WHERE activity_id = :activity_id AND sku_id = :sku_id;
