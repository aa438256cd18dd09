-- Loads a SKU with its stock of record. Guards nothing. Zero rows: there is no such SKU. Index: the primary key.
SELECT price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments, revision
FROM sku WHERE sku_ref = :sku_ref;
