-- Finds the number of a credit account. Guards nothing. Zero rows: nobody has heard of it. Index: the one on id.
SELECT seq FROM credit_account WHERE id = $1;
