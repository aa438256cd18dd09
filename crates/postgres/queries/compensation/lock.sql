-- Locks compensation tasks, by purchase. Guards the decision that follows. Rows that are not there are missing.
-- Index: purchase_by_id, then the primary key.
SELECT 1
FROM purchase AS p JOIN compensation_task AS t ON t.purchase = p.seq
WHERE p.id = ANY ($1::UUID[])
ORDER BY t.purchase
FOR NO KEY UPDATE OF t;
