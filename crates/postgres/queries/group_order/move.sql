-- Changes group orders; their terms never change. Guard: the revision they were decided on. Fewer rows: a guard is lost; the
-- caller reads what is there. Index: the one of ids.
UPDATE group_order AS g SET
    status = c.status, participants = c.participants, attempts = c.attempts, retries = c.retries,
    next_attempt_at = c.next_attempt_at, last_error = c.last_error, updated_at = c.updated_at, revision = g.revision + 1
FROM unnest($1::TEXT[], $2::BIGINT[], $3::SMALLINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::TEXT[],
    $9::BIGINT[])
    AS c (id, revision, status, participants, attempts, retries, next_attempt_at, last_error, updated_at)
WHERE g.id = c.id AND g.revision = c.revision;
