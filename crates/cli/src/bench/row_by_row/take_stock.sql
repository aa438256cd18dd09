-- Occupies one unit. Zero rows: none is available, or the SKU does not exist. By primary key.
UPDATE sku_inventory
SET available_stock = available_stock - 1, occupied_stock = occupied_stock + 1, version = version + 1,
    updated_at = clock_timestamp()
WHERE activity_id = $1 AND sku_id = $2 AND available_stock > 0
RETURNING available_stock, occupied_stock, version;
