-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq, sku_ref, purchase, adjustment, cause, available, occupied, sold, note, at
FROM stock_entry
WHERE seq > :seq
ORDER BY seq
LIMIT :limit;
