-- Puts back what an account amounts to, after its entries. Guarded by the trigger that compares the two. Zero rows: the account
-- is not there. Index: the primary key.
UPDATE credit_account SET balance = d.balance, entries = d.entries
FROM (SELECT :seq AS seq, :balance AS balance, :entries AS entries) AS d WHERE credit_account.seq = d.seq;
