-- Reads refunds with their purchases: those that are named, and all of the named purchases. Guards nothing. Those that are not
-- there are missing. Index: the primary key, refund_by_purchase.
SELECT r.id, p.id, r.payment, r.amount, r.currency, r.status, r.cause, r.reason, r.created_at, r.updated_at, r.revision
FROM refund AS r JOIN purchase AS p ON p.seq = r.purchase
WHERE r.id IN (
    SELECT unnest($1::UUID[])
    UNION
    SELECT o.id FROM purchase AS q JOIN refund AS o ON o.purchase = q.seq WHERE q.id = ANY ($2::UUID[]));
