-- Locks credit accounts by id: those that are named, and those that pay for jobs. Guards the decision that follows. Rows that
-- are not there are missing. Index: the ones on id, then the primary key.
SELECT 1
FROM credit_account AS a
WHERE a.seq IN (
    SELECT n.seq FROM credit_account AS n WHERE n.id = ANY ($1::TEXT[])
    UNION
    SELECT j.account FROM job AS j WHERE j.id = ANY ($2::TEXT[]))
ORDER BY a.seq
FOR NO KEY UPDATE OF a;
