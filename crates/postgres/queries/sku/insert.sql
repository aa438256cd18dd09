-- Adds SKUs. Guarded by the uniqueness of their keys. As many rows as SKUs, with their new numbers, or a constraint refuses
-- them. Index: writes the one on the key.
INSERT INTO sku (
    activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments,
    revision
)
SELECT * FROM unnest(
    $1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::SMALLINT[], $5::BIGINT[], $6::BIGINT[], $7::INTEGER[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[])
RETURNING sku_ref, activity_id, sku_id;
