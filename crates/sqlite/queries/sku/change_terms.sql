-- Changes the terms of a SKU; stock is left alone. Guard: the revision it was decided on. Zero rows: the guard is lost;
-- the caller reads what is there. Index: the primary key.
UPDATE sku SET
    price = :price, currency = :currency, per_user_limit = :per_user_limit, limit_since = :limit_since, buckets = :buckets,
    revision = revision + 1
WHERE sku_ref = :sku_ref AND revision = :revision;
