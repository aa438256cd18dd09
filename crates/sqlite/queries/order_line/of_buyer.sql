-- Finds the direct orders of a buyer that have a line of one SKU. Guards nothing. Zero rows: the buyer has none.
-- Index: order_line_by_place (its first two columns).
SELECT purchase FROM order_line WHERE user_id = :user_id AND sku_ref = :sku_ref;
