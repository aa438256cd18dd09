-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    sku_ref, activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available,
    occupied, sold, adjustments, revision
FROM sku
WHERE sku_ref > :sku_ref
ORDER BY sku_ref
LIMIT :limit;
