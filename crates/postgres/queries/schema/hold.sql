-- Keeps everybody else from the schema until the session ends; waits while another session uses it (share.sql) or holds it. Guards
-- a schema that is moved as a whole. One row; none where there is no schema. Index: of the server's own list of schemas.
SELECT pg_advisory_lock($1::INTEGER, (n.oid::BIGINT - 2147483648)::INTEGER)
FROM pg_namespace AS n WHERE n.nspname = current_schema();
