-- Lists the entries of an account, newest first, before a number. Guards nothing. Zero rows: the list ends.
-- Index: the primary key, backwards.
SELECT e.number, e.kind, e.amount, e.balance_after, j.id, e.reference, e.reason, w.text, e.created_at
FROM credit_entry AS e
JOIN word AS w ON w.word_ref = e.actor
LEFT JOIN job AS j ON j.seq = e.job
WHERE e.account = $1 AND e.number < $2
ORDER BY e.number DESC
LIMIT $3;
