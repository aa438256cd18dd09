-- Makes the list of what was carried out, where it is not there. Guards nothing. Index: none.
CREATE TABLE IF NOT EXISTS onceward_migration (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
