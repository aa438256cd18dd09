-- Reads every payment attempt of a purchase. Guards nothing. Zero rows: nobody has tried to pay. Index: payment_by_purchase.
SELECT m.id, p.id, m.provider, m.amount, m.currency, m.status, m.provider_transaction, m.created_at, m.updated_at,
    m.revision
FROM purchase AS p JOIN payment AS m ON m.purchase = p.seq
WHERE p.id = :purchase_id;
