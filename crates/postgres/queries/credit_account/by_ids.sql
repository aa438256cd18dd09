-- Reads credit accounts: those that are named, and those that pay for jobs. Guards nothing. Those that are not there were
-- never heard of. Index: the ones on id, then the primary key.
SELECT a.id, a.balance, a.entries, a.overdraft, a.created_at, a.updated_at, a.revision
FROM credit_account AS a
WHERE a.seq IN (
    SELECT n.seq FROM credit_account AS n WHERE n.id = ANY ($1::TEXT[])
    UNION
    SELECT j.account FROM job AS j WHERE j.id = ANY ($2::TEXT[]));
