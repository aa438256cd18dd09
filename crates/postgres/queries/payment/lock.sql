-- Locks payment attempts by id: those that are named, and all of the named purchases. Guards the decision that follows. Rows
-- that are not there are missing. Index: the primary key, payment_by_purchase.
SELECT 1
FROM payment AS m
WHERE m.id IN (
    SELECT unnest($1::UUID[])
    UNION
    SELECT o.id FROM purchase AS p JOIN payment AS o ON o.purchase = p.seq WHERE p.id = ANY ($2::UUID[]))
ORDER BY m.id
FOR NO KEY UPDATE OF m;
