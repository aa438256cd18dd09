-- Reads a credit account. Guards nothing. Zero rows: nobody has heard of it. Index: the one on id.
SELECT balance, entries, overdraft, created_at, updated_at, revision FROM credit_account WHERE id = :id;
