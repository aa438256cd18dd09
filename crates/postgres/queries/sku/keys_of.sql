-- Finds the keys behind numbers; they never change, so each is asked for once. Those that are not there do not exist.
-- Index: the primary key.
SELECT sku_ref, activity_id, sku_id FROM sku WHERE sku_ref = ANY ($1::INTEGER[]);
