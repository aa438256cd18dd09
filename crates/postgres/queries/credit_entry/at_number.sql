-- Reads when an entry was made and the balance after it. Guards nothing. Zero rows: the account has fewer entries.
-- Index: the primary key.
SELECT created_at, balance_after FROM credit_entry WHERE account = $1 AND number = $2;
