-- Lists the entries of an account, newest first, before a number. Guards nothing. Zero rows: the list ends.
-- Index: the primary key, backwards.
SELECT e.number, e.kind, e.amount, e.balance_after, j.id, e.reference, e.reason, e.actor, e.created_at
FROM credit_entry AS e LEFT JOIN job AS j ON j.seq = e.job
WHERE e.account = :account AND e.number < :before
ORDER BY e.number DESC
LIMIT :limit;
