-- Names a state for the views. Guards nothing: the machines are the authority. Zero rows: the name is there already.
-- Index: the primary key.
INSERT INTO state (machine, code, name) VALUES (:machine, :code, :name)
ON CONFLICT (machine, code) DO UPDATE SET name = excluded.name WHERE name <> excluded.name;
