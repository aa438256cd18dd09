-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    sku_ref::BIGINT, initial::BIGINT, available::BIGINT, open_reserved::BIGINT, committed::BIGINT,
    adjustments::BIGINT, revision::BIGINT
FROM bucket
WHERE bucket.sku_ref > $1::BIGINT
ORDER BY bucket.sku_ref LIMIT $2::BIGINT;
