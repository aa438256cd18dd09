-- Puts SKUs on sale with all their stock available.
INSERT INTO sku_inventory (activity_id, sku_id, initial_stock, available_stock)
SELECT $1::BIGINT, n, $3::BIGINT, $3::BIGINT FROM generate_series(1, $2::BIGINT) AS n;
