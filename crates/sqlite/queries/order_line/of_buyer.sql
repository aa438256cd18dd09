-- Finds the direct orders of a buyer that hold a place on one SKU. Guards nothing. Zero rows: the buyer holds none.
-- Index: order_line_by_place (its first three columns).
SELECT purchase FROM order_line WHERE user_id = :user_id AND sku_ref = :sku_ref AND place >= 0;
