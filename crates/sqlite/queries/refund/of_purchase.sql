-- Reads every refund of a purchase. Guards nothing. Zero rows: nothing was to go back. Index: refund_by_purchase.
SELECT r.id, p.id, r.payment, r.amount, r.currency, r.status, r.cause, r.reason, r.created_at, r.updated_at, r.revision
FROM purchase AS p JOIN refund AS r ON r.purchase = p.seq
WHERE p.id = :purchase_id;
