-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO compensation_task (
    purchase, status, attempts, last_result, created_at, updated_at, revision)
SELECT
    d.purchase, d.status, d.attempts, d.last_result, d.created_at, d.updated_at, d.revision
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    WITH ORDINALITY AS d (
        purchase, status, attempts, last_result, created_at, updated_at, revision, ord)
ORDER BY d.ord;
