-- Adds refunds. Guarded by their ids. Fewer rows: a purchase is not there. Index: purchase_by_id; writes the primary key and
-- refund_by_purchase.
INSERT INTO refund (id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision)
SELECT c.id, p.seq, c.payment, c.amount, c.currency, c.status, c.cause, c.reason, c.created_at, c.updated_at, c.revision
FROM unnest($1::UUID[], $2::UUID[], $3::UUID[], $4::BIGINT[], $5::SMALLINT[], $6::SMALLINT[], $7::SMALLINT[], $8::TEXT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[])
    AS c (id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision)
JOIN purchase AS p ON p.id = c.purchase;
