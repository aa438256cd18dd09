-- Loads notices. Guards nothing. Those that are not there are missing. Index: the one on the id.
SELECT id, kind, subject, recipient, detail, status, created_at, updated_at, revision
FROM notice WHERE id = ANY ($1::UUID[]);
