-- Lists SKUs by key, after a key. Guards nothing. Zero rows: there are no more. Index: none, it reads the table; the one on the key is
-- in the order of the database's language, and pages go by bytes.
SELECT sku_ref, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments, revision,
    activity_id, sku_id
FROM sku
WHERE (activity_id COLLATE "C", sku_id COLLATE "C") > ($1::TEXT, $2::TEXT)
ORDER BY activity_id COLLATE "C", sku_id COLLATE "C"
LIMIT $3;
