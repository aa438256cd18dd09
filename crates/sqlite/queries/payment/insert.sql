-- Adds a payment attempt. Guarded by its id and by the provider's transaction. One row, or a broken constraint.
-- Index: writes the primary key and payment_by_purchase.
INSERT INTO payment (id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at,
    revision)
VALUES (:id, :purchase, :provider, :amount, :currency, :status, :provider_transaction, :created_at, :updated_at,
    :revision);
