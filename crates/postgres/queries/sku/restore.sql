-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO sku (
    sku_ref, activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available,
    occupied, sold, adjustments, revision)
OVERRIDING SYSTEM VALUE
SELECT
    d.sku_ref, d.activity_id, d.sku_id, d.price, d.currency, d.per_user_limit, d.limit_since, d.buckets, d.opening,
    d.initial, d.available, d.occupied, d.sold, d.adjustments, d.revision
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[])
    WITH ORDINALITY AS d (
        sku_ref, activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial,
        available, occupied, sold, adjustments, revision, ord)
ORDER BY d.ord;
