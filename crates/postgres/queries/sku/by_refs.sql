-- Loads SKUs with their stock of record. Guards nothing. Those that are not there are missing. Index: the primary key.
SELECT sku_ref, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments, revision
FROM sku WHERE sku_ref = ANY ($1::INTEGER[]);
