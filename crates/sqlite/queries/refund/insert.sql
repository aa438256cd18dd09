-- Adds a refund. Guarded by its id. One row, or a broken constraint. Index: writes the primary key and refund_by_purchase.
INSERT INTO refund (id, purchase, payment, amount, currency, status, cause, reason, created_at, updated_at, revision)
VALUES (:id, :purchase, :payment, :amount, :currency, :status, :cause, :reason, :created_at, :updated_at, :revision);
