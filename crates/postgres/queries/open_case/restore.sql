-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO open_case (
    seq, kind, subject, detail, at)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.kind, d.subject, d.detail, d.at
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[])
    WITH ORDINALITY AS d (
        seq, kind, subject, detail, at, ord)
ORDER BY d.ord;
