-- Puts back what accounts amount to, after their entries. Guarded by the trigger that compares the two. Fewer rows: an account is
-- not there. Index: the primary key.
UPDATE credit_account AS a SET balance = d.balance, entries = d.entries
FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[]) AS d (seq, balance, entries)
WHERE a.seq = d.seq;
