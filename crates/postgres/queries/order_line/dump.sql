-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    purchase::BIGINT, line::BIGINT, user_id, sku_ref::BIGINT, quantity::BIGINT, place::BIGINT, unit_price::BIGINT
FROM order_line
WHERE (order_line.purchase, order_line.line) > ($1::BIGINT, $2::BIGINT)
ORDER BY order_line.purchase, order_line.line LIMIT $3::BIGINT;
