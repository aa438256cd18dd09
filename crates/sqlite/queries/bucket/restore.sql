-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO bucket (sku_ref, initial, available, open_reserved, committed, adjustments, revision)
VALUES (:sku_ref, :initial, :available, :open_reserved, :committed, :adjustments, :revision);
