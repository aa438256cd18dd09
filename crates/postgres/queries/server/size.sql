-- Adds up what the tables and indexes of the schema take on disk. One row, in bytes. Index: none.
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::BIGINT
FROM pg_class AS c
WHERE c.relkind = 'r' AND c.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = current_schema());
