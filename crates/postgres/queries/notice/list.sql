-- Lists notices, newest first. Guards nothing. Zero rows: there are none (any more). Index: the primary key.
SELECT id, kind, subject, recipient, detail, status, created_at, updated_at, revision, seq
FROM notice WHERE seq < $1 ORDER BY seq DESC LIMIT $2;
