-- Finds the number of a credit account and the revision that is there. Guards nothing. Zero rows: nobody has heard of it.
-- Index: the one on id.
SELECT seq, revision FROM credit_account WHERE id = :id;
