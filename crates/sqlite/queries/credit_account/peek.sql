-- Reads the revision of a credit account, to say what is there where a guard was lost. Zero rows: no such account.
-- Index: the primary key.
SELECT revision FROM credit_account WHERE seq = :seq;
