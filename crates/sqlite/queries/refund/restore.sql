-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO refund (id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision)
VALUES (:id, :purchase, :payment, :amount, :currency, :status, :cause, :reason, :created_at, :updated_at, :revision);
