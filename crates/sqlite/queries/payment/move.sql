-- Changes a payment attempt. Guard: the revision it was decided on. Zero rows: the guard is lost; the caller reads what is
-- there. Index: the primary key; payment_by_transaction keeps a transaction to one payment.
UPDATE payment SET
    status = :status, provider_transaction = :provider_transaction, updated_at = :updated_at, revision = revision + 1
WHERE id = :id AND revision = :revision;
