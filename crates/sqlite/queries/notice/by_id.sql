-- Loads a notice. Guards nothing. Zero rows: there is no such notice. Index: the one on the id.
SELECT id, kind, subject, recipient, detail, status, created_at, updated_at, revision FROM notice WHERE id = :id;
