-- Loads the compensation task of a purchase. Guards nothing. Zero rows: there is none, or no such purchase.
-- Index: purchase_by_id, then the primary key.
SELECT t.status, t.attempts, t.last_result, t.created_at, t.updated_at, t.revision
FROM purchase AS p JOIN compensation_task AS t ON t.purchase = p.seq
WHERE p.id = :id;
