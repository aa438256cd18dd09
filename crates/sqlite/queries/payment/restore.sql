-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO payment (
    id, purchase, provider, amount, currency, status, provider_transaction, created_at, updated_at, revision)
VALUES (
    :id, :purchase, :provider, :amount, :currency, :status, :provider_transaction, :created_at, :updated_at, :revision);
