-- Forgets first answers. Guard: they are as old as they were seen. Fewer rows: a guard is lost; another one is there, or none.
-- Index: the primary key.
DELETE FROM answer AS a
USING unnest($1::TEXT[], $2::BIGINT[]) AS c (key, at)
WHERE a.key = c.key AND a.at = c.at;
