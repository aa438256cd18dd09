-- Counts credit accounts and entries. One row. Index: whichever is smallest.
SELECT (SELECT count(*) FROM credit_account), (SELECT count(*) FROM credit_entry);
