-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    account::BIGINT, number::BIGINT, kind::BIGINT, amount::BIGINT, balance_after::BIGINT, job::BIGINT, reference,
    reason, actor::BIGINT, created_at::BIGINT
FROM credit_entry
WHERE (credit_entry.account, credit_entry.number) > ($1::BIGINT, $2::BIGINT)
ORDER BY credit_entry.account, credit_entry.number LIMIT $3::BIGINT;
