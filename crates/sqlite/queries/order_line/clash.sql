-- Finds a place of a direct order that a flash purchase holds too. Zero rows: there is none, as it should be.
-- Index: the primary key, then purchase_by_place.
SELECT l.place
FROM order_line AS l
JOIN purchase AS p ON p.user_id = l.user_id AND p.sku_ref = l.sku_ref AND p.place = l.place
WHERE l.purchase = :purchase AND l.place >= 0;
