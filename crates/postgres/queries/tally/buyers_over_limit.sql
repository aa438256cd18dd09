-- Counts, by SKU, the buyers whose live orders hold more than the limit, and who have ordered
-- since it is in force. The two masks have a bit for each order state that holds a place: where a cancelled order frees the
-- place, and where it does not. Zero rows: nobody is over it.
-- Index: none, it reads everything.
SELECT o.sku_ref, count(*)
FROM (
    SELECT h.sku_ref AS sku_ref
    FROM (
        SELECT user_id, sku_ref, quantity, order_status, created_at FROM purchase
        WHERE sku_ref IS NOT NULL AND order_status IS NOT NULL
        UNION ALL
        SELECT p.user_id, l.sku_ref, l.quantity, p.order_status, p.created_at
        FROM order_line AS l JOIN purchase AS p ON p.seq = l.purchase
        WHERE p.order_status IS NOT NULL
    ) AS h
    JOIN sku AS s ON s.sku_ref = h.sku_ref
    JOIN activity AS a ON a.id = s.activity_id
    WHERE (CASE WHEN a.cancelled_frees_limit THEN $1::INTEGER ELSE $2::INTEGER END >> h.order_status) & 1 = 1
    GROUP BY h.sku_ref, h.user_id
    HAVING sum(h.quantity) > max(s.per_user_limit) AND max(h.created_at) > max(s.limit_since)
) AS o
GROUP BY o.sku_ref;
