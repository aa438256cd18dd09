-- Looks whether the list of what was carried out is there, and whether the schema holds anything. One row. Index: none.
SELECT to_regclass('onceward_migration') IS NOT NULL,
    EXISTS (
        SELECT FROM pg_class AS c
        WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = current_schema()));
