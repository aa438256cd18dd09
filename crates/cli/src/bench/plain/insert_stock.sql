-- Puts a SKU on sale with all its stock available.
INSERT INTO sku_inventory (activity_id, sku_id, initial_stock, available_stock)
VALUES (?1, ?2, ?3, ?3);
