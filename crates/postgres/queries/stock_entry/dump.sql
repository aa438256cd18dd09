-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, sku_ref::BIGINT, purchase::BIGINT, uuid_send(adjustment) AS adjustment, cause::BIGINT,
    available::BIGINT, occupied::BIGINT, sold::BIGINT, note, at::BIGINT
FROM stock_entry
WHERE stock_entry.seq > $1::BIGINT
ORDER BY stock_entry.seq LIMIT $2::BIGINT;
