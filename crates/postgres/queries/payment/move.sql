-- Changes payment attempts. Guard: the revision they were decided on. Fewer rows: a guard is lost; the caller reads what is
-- there. Index: the primary key; payment_by_transaction keeps a transaction to one payment.
UPDATE payment AS m SET
    status = c.status, provider_transaction = c.provider_transaction, updated_at = c.updated_at, revision = m.revision + 1
FROM unnest($1::UUID[], $2::BIGINT[], $3::SMALLINT[], $4::TEXT[], $5::BIGINT[])
    AS c (id, revision, status, provider_transaction, updated_at)
WHERE m.id = c.id AND m.revision = c.revision;
