-- Lists every SKU by key, for the sums. Guards nothing. Zero rows: there is none. Index: none, it reads the table.
SELECT sku_ref, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments, revision,
    activity_id, sku_id
FROM sku ORDER BY activity_id COLLATE "C", sku_id COLLATE "C";
