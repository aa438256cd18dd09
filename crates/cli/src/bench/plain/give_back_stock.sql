-- Gives back the unit that this transaction occupied in vain. Zero rows cannot be. By primary key.
UPDATE sku_inventory
SET available_stock = available_stock + 1,
    occupied_stock  = occupied_stock - 1,
    version         = version + 1,
    updated_at      = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE activity_id = ?1
  AND sku_id = ?2
  AND occupied_stock > 0;
