-- Changes compensation tasks. Guard: the revision they were decided on. Fewer rows: a guard is lost; the caller reads what
-- is there. Index: purchase_by_id, then the primary key.
UPDATE compensation_task AS t SET
    status = c.status, attempts = c.attempts, last_result = c.last_result, updated_at = c.updated_at,
    revision = t.revision + 1
FROM unnest($1::UUID[], $2::BIGINT[], $3::SMALLINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[])
    AS c (id, revision, status, attempts, last_result, updated_at)
JOIN purchase AS p ON p.id = c.id
WHERE t.purchase = p.seq AND t.revision = c.revision;
