-- Reads the charge of an account that belongs to no job and has this reference. Guards nothing. Zero rows: it was never
-- charged. Index: credit_entry_once_per_reference.
SELECT e.number, e.kind, e.amount, e.balance_after, NULL, e.reference, e.reason, e.actor, e.created_at
FROM credit_account AS a JOIN credit_entry AS e ON e.account = a.seq
WHERE a.id = :account_id AND e.reference = :reference AND e.job IS NULL AND e.amount < 0;
