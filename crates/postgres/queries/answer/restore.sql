-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO answer (
    key, fingerprint, status, body, at, lasting)
SELECT
    d.key, d.fingerprint, d.status, d.body, d.at, d.lasting <> 0
FROM unnest(
    $1::TEXT[], $2::BYTEA[], $3::BIGINT[], $4::BYTEA[], $5::BIGINT[], $6::BIGINT[])
    WITH ORDINALITY AS d (
        key, fingerprint, status, body, at, lasting, ord)
ORDER BY d.ord;
