-- Reads payment attempts with their purchases: those that are named, and all of the named purchases. Guards nothing. Those that
-- are not there are missing. Index: the primary key, payment_by_purchase.
SELECT m.id, p.id, m.provider, m.amount, m.currency, m.status, m.provider_transaction, m.created_at, m.updated_at,
    m.revision
FROM payment AS m JOIN purchase AS p ON p.seq = m.purchase
WHERE m.id IN (
    SELECT unnest($1::UUID[])
    UNION
    SELECT o.id FROM purchase AS q JOIN payment AS o ON o.purchase = q.seq WHERE q.id = ANY ($2::UUID[]));
