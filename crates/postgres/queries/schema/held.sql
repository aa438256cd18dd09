-- Whether this very session has the schema alone (hold.sql), by the server's own list of locks: a session may have been lent to us for
-- one question only, by a pooler that gives the next one to another, and then the lock is not where we think. One that also uses the
-- schema together with others (share.sql) is such a session too. Guards a schema that is moved as a whole. One row. Index: none.
SELECT COALESCE(bool_and(l.mode = 'ExclusiveLock'), FALSE)
FROM pg_locks AS l
JOIN pg_namespace AS n ON l.objid = (n.oid::BIGINT - 2147483648)::INTEGER::OID
WHERE n.nspname = current_schema() AND l.locktype = 'advisory' AND l.classid = $1::INTEGER::OID AND l.objsubid = 2
    AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    AND l.pid = pg_backend_pid() AND l.granted;
