-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    sku_ref::BIGINT, activity_id, sku_id, price::BIGINT, currency::BIGINT, per_user_limit::BIGINT,
    limit_since::BIGINT, buckets::BIGINT, opening::BIGINT, initial::BIGINT, available::BIGINT, occupied::BIGINT,
    sold::BIGINT, adjustments::BIGINT, revision::BIGINT
FROM sku
WHERE sku.sku_ref > $1::BIGINT
ORDER BY sku.sku_ref LIMIT $2::BIGINT;
