-- Reads a payment attempt with its purchase. Guards nothing. Zero rows: there is no such attempt. Index: the primary key.
SELECT m.id, p.id, m.provider, m.amount, m.currency, m.status, m.provider_transaction, m.created_at, m.updated_at,
    m.revision
FROM payment AS m JOIN purchase AS p ON p.seq = m.purchase
WHERE m.id = :id;
