-- Lists SKUs by key, after a key. Guards nothing. Zero rows: there are no more. Index: the one on the key.
SELECT sku_ref, activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments, revision
FROM sku
WHERE (activity_id, sku_id) > (:activity_id, :sku_id)
ORDER BY activity_id, sku_id
LIMIT :limit;
