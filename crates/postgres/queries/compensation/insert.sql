-- Adds compensation tasks. Guarded by the primary key: one task for each purchase. Fewer rows: a purchase is not there.
-- Index: purchase_by_id; writes the primary key.
INSERT INTO compensation_task (purchase, status, attempts, last_result, created_at, updated_at, revision)
SELECT p.seq, c.status, c.attempts, c.last_result, c.created_at, c.updated_at, c.revision
FROM unnest($1::UUID[], $2::SMALLINT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    AS c (id, status, attempts, last_result, created_at, updated_at, revision)
JOIN purchase AS p ON p.id = c.id;
