-- Reads what is there when a guard is lost, for the operator. Zero rows: there is no such SKU. Index: the primary key.
SELECT revision FROM sku WHERE sku_ref = $1;
