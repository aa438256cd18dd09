-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO stock_entry (
    seq, sku_ref, purchase, adjustment, cause, available, occupied, sold, note, at)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.sku_ref, d.purchase, encode(d.adjustment, 'hex')::UUID, d.cause, d.available, d.occupied, d.sold, d.note,
    d.at
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BYTEA[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::TEXT[], $10::BIGINT[])
    WITH ORDINALITY AS d (
        seq, sku_ref, purchase, adjustment, cause, available, occupied, sold, note, at, ord)
ORDER BY d.ord;
