-- Changes jobs. Guard: the revision they were decided on. Fewer rows: a guard is lost; the caller reads what is there.
-- Index: the one on id.
UPDATE job AS j SET
    status = c.status, attempts = c.attempts, not_before = c.not_before, token = c.token, worker = c.worker,
    last_error = c.last_error, is_refunded = c.is_refunded, is_reclaimed = c.is_reclaimed, updated_at = c.updated_at,
    revision = j.revision + 1
FROM unnest($1::TEXT[], $2::BIGINT[], $3::SMALLINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], $8::TEXT[],
    $9::BOOLEAN[], $10::BOOLEAN[], $11::BIGINT[])
    AS c (id, revision, status, attempts, not_before, token, worker, last_error, is_refunded, is_reclaimed, updated_at)
WHERE j.id = c.id AND j.revision = c.revision;
