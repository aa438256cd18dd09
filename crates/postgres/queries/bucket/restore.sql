-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO bucket (
    sku_ref, initial, available, open_reserved, committed, adjustments, revision)
SELECT
    d.sku_ref, d.initial, d.available, d.open_reserved, d.committed, d.adjustments, d.revision
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    WITH ORDINALITY AS d (
        sku_ref, initial, available, open_reserved, committed, adjustments, revision, ord)
ORDER BY d.ord;
