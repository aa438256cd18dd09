-- Adds a credit account without entries. Guarded by its id. One row, or a broken constraint. Index: writes the one on id.
INSERT INTO credit_account (id, balance, entries, overdraft, created_at, updated_at, revision)
VALUES (:id, :balance, :entries, :overdraft, :created_at, :updated_at, :revision);
