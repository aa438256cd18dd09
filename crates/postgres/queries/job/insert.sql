-- Adds jobs. Guarded by their ids. Fewer rows: an account is not there. Index: writes the one on id.
INSERT INTO job (id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error,
    is_refunded, is_reclaimed, created_at, updated_at, revision)
SELECT c.id, a.seq, c.cost, c.max_attempts, c.payload, c.status, c.attempts, c.not_before, c.token, c.worker, c.last_error,
    c.is_refunded, c.is_reclaimed, c.created_at, c.updated_at, c.revision
FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::SMALLINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::TEXT[], $11::TEXT[], $12::BOOLEAN[], $13::BOOLEAN[], $14::BIGINT[], $15::BIGINT[], $16::BIGINT[])
    AS c (id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error, is_refunded,
    is_reclaimed, created_at, updated_at, revision)
JOIN credit_account AS a ON a.id = c.account;
