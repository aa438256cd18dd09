-- Reads the revision of a credit account, to say what is there where a guard was lost. Zero rows: no such account.
-- Index: the one on id.
SELECT revision FROM credit_account WHERE id = $1;
