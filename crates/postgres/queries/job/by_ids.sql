-- Reads jobs with the accounts that pay for them. Guards nothing. Those that are not there were never opened.
-- Index: the one on id.
SELECT j.id, a.id, j.cost, j.max_attempts, j.payload, j.status, j.attempts, j.not_before, j.token, j.worker, j.last_error,
    j.is_refunded, j.is_reclaimed, j.created_at, j.updated_at, j.revision
FROM job AS j JOIN credit_account AS a ON a.seq = j.account
WHERE j.id = ANY ($1::TEXT[]);
