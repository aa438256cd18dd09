-- Notes that a migration was carried out. Guarded by the primary key. One row. Index: the primary key.
INSERT INTO onceward_migration (version, name) VALUES ($1, $2);
