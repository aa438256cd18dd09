-- Finds flash purchases with a place that a direct order holds too. Zero rows: there is none, as it should be.
-- Index: purchase_by_id, then order_line_by_place.
SELECT p.place
FROM purchase AS p
JOIN order_line AS l ON l.user_id = p.user_id AND l.sku_ref = p.sku_ref AND l.place = p.place AND l.place >= 0
WHERE p.id = ANY ($1::UUID[]) AND p.place >= 0;
