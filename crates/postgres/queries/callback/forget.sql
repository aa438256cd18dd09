-- Forgets callbacks. Guard: they are as old as they were seen. Fewer rows: a guard is lost; another one is there, or none.
-- Index: the primary key.
DELETE FROM callback AS b
USING unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS c (provider, event, received_at)
WHERE b.provider = c.provider AND b.event = c.event AND b.received_at = c.received_at;
