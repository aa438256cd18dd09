-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    purchase, line, user_id, sku_ref, quantity, place, unit_price
FROM order_line
WHERE (purchase, line) > (:purchase, :line)
ORDER BY purchase, line
LIMIT :limit;
