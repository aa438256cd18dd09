-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO notice (
    seq, id, kind, subject, recipient, detail, status, created_at, updated_at, revision)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, encode(d.id, 'hex')::UUID, d.kind, d.subject, d.recipient, d.detail, d.status, d.created_at, d.updated_at,
    d.revision
FROM unnest(
    $1::BIGINT[], $2::BYTEA[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[])
    WITH ORDINALITY AS d (
        seq, id, kind, subject, recipient, detail, status, created_at, updated_at, revision, ord)
ORDER BY d.ord;
