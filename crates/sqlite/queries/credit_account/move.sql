-- Moves a credit account to the last of its entries, which are there by now. Guard: the revision it was decided on. Zero
-- rows: the guard is lost; the caller reads what is there. Index: the primary key.
UPDATE credit_account SET
    balance = :balance, entries = :entries, overdraft = :overdraft, updated_at = :updated_at, revision = revision + 1
WHERE seq = :seq AND revision = :revision;
