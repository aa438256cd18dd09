-- Finds direct orders with a place that a flash purchase holds too. Zero rows: there is none, as it should be.
-- Index: purchase_by_id, the primary key, then purchase_by_place.
SELECT l.place
FROM purchase AS o
JOIN order_line AS l ON l.purchase = o.seq AND l.place >= 0
JOIN purchase AS p ON p.user_id = l.user_id AND p.sku_ref = l.sku_ref AND p.place = l.place
WHERE o.id = ANY ($1::UUID[]);
