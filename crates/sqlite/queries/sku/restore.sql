-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO sku (
    sku_ref, activity_id, sku_id, price, currency, per_user_limit, limit_since, buckets, opening, initial, available,
    occupied, sold, adjustments, revision)
VALUES (
    :sku_ref, :activity_id, :sku_id, :price, :currency, :per_user_limit, :limit_since, :buckets, :opening, :initial,
    :available, :occupied, :sold, :adjustments, :revision);
