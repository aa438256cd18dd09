-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, id, overdraft::BIGINT, created_at::BIGINT, updated_at::BIGINT, revision::BIGINT
FROM credit_account
WHERE credit_account.seq > $1::BIGINT
ORDER BY credit_account.seq LIMIT $2::BIGINT;
