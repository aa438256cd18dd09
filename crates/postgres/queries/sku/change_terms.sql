-- Changes the terms of SKUs; stock is left alone. Guard: the revision they were decided on. Fewer rows: a guard is lost;
-- the caller reads what is there. Index: the primary key.
UPDATE sku AS s SET
    price = c.price, currency = c.currency, per_user_limit = c.per_user_limit,
    limit_since = c.limit_since, buckets = c.buckets,
    revision = s.revision + 1
FROM unnest($1::INTEGER[], $2::BIGINT[], $3::BIGINT[], $4::SMALLINT[], $5::BIGINT[], $6::BIGINT[], $7::INTEGER[])
    AS c (sku_ref, revision, price, currency, per_user_limit, limit_since, buckets)
WHERE s.sku_ref = c.sku_ref AND s.revision = c.revision;
