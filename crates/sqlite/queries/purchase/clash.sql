-- Finds the place of a flash purchase that a direct order holds too. Zero rows: there is none, as it should be.
-- Index: the primary key, then order_line_by_place.
SELECT p.place
FROM purchase AS p
JOIN order_line AS l ON l.user_id = p.user_id AND l.sku_ref = p.sku_ref AND l.place = p.place
WHERE p.seq = :seq AND p.place >= 0;
