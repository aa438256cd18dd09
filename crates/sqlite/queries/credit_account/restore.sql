-- Puts a dumped row back as it was, but for what its entries make. Guarded by its keys and checks. Zero rows cannot be.
-- Index: writes all of the table.
INSERT INTO credit_account (seq, id, balance, entries, overdraft, created_at, updated_at, revision)
VALUES (:seq, :id, 0, 0, :overdraft, :created_at, :updated_at, :revision);
