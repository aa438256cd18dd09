-- Names states for the views. Guards nothing: the machines are the authority. Fewer rows: the names are there already.
-- Index: the primary key.
INSERT INTO state AS s (machine, code, name)
SELECT * FROM unnest($1::TEXT[], $2::SMALLINT[], $3::TEXT[])
ON CONFLICT (machine, code) DO UPDATE SET name = excluded.name WHERE s.name <> excluded.name;
