-- Changes refunds. Guard: the revision they were decided on. Fewer rows: a guard is lost; the caller reads what is there.
-- Index: the primary key.
UPDATE refund AS r SET status = c.status, updated_at = c.updated_at, revision = r.revision + 1
FROM unnest($1::UUID[], $2::BIGINT[], $3::SMALLINT[], $4::BIGINT[]) AS c (id, revision, status, updated_at)
WHERE r.id = c.id AND r.revision = c.revision;
