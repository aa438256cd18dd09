-- Lists every SKU by key, for the sums. Guards nothing. Zero rows: there is none. Index: the one on the key.
SELECT sku_ref, activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments, revision
FROM sku ORDER BY activity_id, sku_id;
