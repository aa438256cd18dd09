-- Reads what is there when a guard is lost, for the operator. Zero rows: there is no such task.
-- Index: purchase_by_id, then the primary key.
SELECT t.revision FROM purchase AS p JOIN compensation_task AS t ON t.purchase = p.seq WHERE p.id = $1;
