-- Forgets notices. Guard: they have not changed since they were seen. Fewer rows: a guard is lost; one has changed, or is gone.
-- Index: the one on the id.
DELETE FROM notice AS n
USING unnest($1::UUID[], $2::BIGINT[]) AS c (id, updated_at)
WHERE n.id = c.id AND n.updated_at = c.updated_at;
