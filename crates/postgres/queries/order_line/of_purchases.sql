-- Loads the lines of direct orders, in their order. Guards nothing. Zero rows: direct orders without lines, which are
-- never written. Index: the primary key.
SELECT purchase, sku_ref, quantity, place, unit_price
FROM order_line WHERE purchase = ANY ($1::BIGINT[]) ORDER BY purchase, line;
