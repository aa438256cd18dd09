-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    account, number, kind, amount, balance_after, job, reference, reason, actor, created_at
FROM credit_entry
WHERE (account, number) > (:account, :number)
ORDER BY account, number
LIMIT :limit;
