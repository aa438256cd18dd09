-- Reads a refund with its purchase. Guards nothing. Zero rows: there is no such refund. Index: the primary key.
SELECT r.id, p.id, r.payment, r.amount, r.currency, r.status, r.cause, r.reason, r.created_at, r.updated_at, r.revision
FROM refund AS r JOIN purchase AS p ON p.seq = r.purchase
WHERE r.id = :id;
