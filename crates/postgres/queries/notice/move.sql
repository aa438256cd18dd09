-- Changes notices. Guard: the revision they were decided on. Fewer rows: a guard is lost; the caller reads what is there.
-- Index: the one on the id.
UPDATE notice AS n SET status = c.status, updated_at = c.updated_at, revision = n.revision + 1
FROM unnest($1::UUID[], $2::BIGINT[], $3::SMALLINT[], $4::BIGINT[]) AS c (id, revision, status, updated_at)
WHERE n.id = c.id AND n.revision = c.revision;
