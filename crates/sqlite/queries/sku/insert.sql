-- Adds a SKU. Guarded by the uniqueness of its key. Zero rows cannot be: it is added, or a constraint refuses it.
-- Index: writes the one on the key.
INSERT INTO sku (
    activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available, occupied, sold, adjustments,
    revision
) VALUES (
    :activity_id, :sku_id, :price, :currency, :per_user_limit, :limit_since, :buckets, :opening, :initial, :available, :occupied, :sold,
    :adjustments, :revision
);
