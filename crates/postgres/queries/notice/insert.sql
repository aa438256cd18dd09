-- Adds notices. Guarded by the uniqueness of their ids. Fewer rows: one is there already, and nothing happens.
-- Index: writes the one on the id.
INSERT INTO notice (id, kind, subject, recipient, detail, status, created_at, updated_at, revision)
SELECT c.id, c.kind, c.subject, c.recipient, c.detail, c.status, c.created_at, c.updated_at, c.revision
FROM unnest($1::UUID[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::SMALLINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[]) WITH ORDINALITY
    AS c (id, kind, subject, recipient, detail, status, created_at, updated_at, revision, ord)
ORDER BY c.ord
ON CONFLICT (id) DO NOTHING;
