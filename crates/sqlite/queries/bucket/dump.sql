-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    sku_ref, initial, available, open_reserved, committed, adjustments, revision
FROM bucket
WHERE sku_ref > :sku_ref
ORDER BY sku_ref
LIMIT :limit;
