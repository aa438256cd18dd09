-- Counts purchases and units by SKU and state; two lines of one SKU are one purchase. Guards nothing. Zero rows: there is
-- none. Index: none, it reads everything.
SELECT u.sku_ref, u.admission, u.reservation, u.order_status, count(*), sum(u.quantity)::BIGINT
FROM (
    SELECT sku_ref, admission, reservation, order_status, quantity FROM purchase WHERE sku_ref IS NOT NULL
    UNION ALL
    SELECT l.sku_ref, p.admission, p.reservation, p.order_status, l.quantity
    FROM (SELECT purchase, sku_ref, sum(quantity) AS quantity FROM order_line GROUP BY purchase, sku_ref) AS l
    JOIN purchase AS p ON p.seq = l.purchase
) AS u
GROUP BY u.sku_ref, u.admission, u.reservation, u.order_status
ORDER BY u.sku_ref, u.admission, u.reservation NULLS FIRST, u.order_status NULLS FIRST;
