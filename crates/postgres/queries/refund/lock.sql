-- Locks refunds by id: those that are named, and all of the named purchases. Guards the decision that follows. Rows that are not
-- there are missing. Index: the primary key, refund_by_purchase.
SELECT 1
FROM refund AS r
WHERE r.id IN (
    SELECT unnest($1::UUID[])
    UNION
    SELECT o.id FROM purchase AS p JOIN refund AS o ON o.purchase = p.seq WHERE p.id = ANY ($2::UUID[]))
ORDER BY r.id
FOR NO KEY UPDATE OF r;
