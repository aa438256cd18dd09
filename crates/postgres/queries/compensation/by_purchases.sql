-- Loads compensation tasks. Guards nothing. Rows that are not there are missing. Index: purchase_by_id, then the primary key.
SELECT p.id, t.status, t.attempts, t.last_result, t.created_at, t.updated_at, t.revision
FROM purchase AS p JOIN compensation_task AS t ON t.purchase = p.seq
WHERE p.id = ANY ($1::UUID[]);
