-- Says, until the session ends, that somebody uses the schema; waits while another session holds it (hold.sql). Guards a schema
-- that is moved as a whole. One row; none where there is no schema. Index: of the server's own list of schemas.
SELECT pg_advisory_lock_shared($1::INTEGER, (n.oid::BIGINT - 2147483648)::INTEGER)
FROM pg_namespace AS n WHERE n.nspname = current_schema();
