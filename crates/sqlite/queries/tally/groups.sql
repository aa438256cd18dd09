-- Counts purchases and units by SKU and state; two lines of one SKU are one purchase. Guards nothing. Zero rows: there is
-- none. Index: none, it reads everything.
SELECT sku_ref, admission, reservation, order_status, count(*), sum(quantity)
FROM (
    SELECT sku_ref, admission, reservation, order_status, quantity FROM purchase WHERE sku_ref IS NOT NULL
    UNION ALL
    SELECT l.sku_ref, p.admission, p.reservation, p.order_status, l.quantity
    FROM (SELECT purchase, sku_ref, sum(quantity) AS quantity FROM order_line GROUP BY purchase, sku_ref) AS l
    JOIN purchase AS p ON p.seq = l.purchase
)
GROUP BY sku_ref, admission, reservation, order_status
ORDER BY sku_ref, admission, reservation, order_status;
