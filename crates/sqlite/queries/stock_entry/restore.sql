-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO stock_entry (seq, sku_ref, purchase, adjustment, cause, available, occupied, sold, note, at)
VALUES (:seq, :sku_ref, :purchase, :adjustment, :cause, :available, :occupied, :sold, :note, :at);
