-- Loads the lines of a direct order, in their order. Guards nothing. Zero rows: a direct order without lines, which is
-- never written. Index: the primary key.
SELECT sku_ref, quantity, place, unit_price FROM order_line WHERE purchase = :purchase ORDER BY line;
