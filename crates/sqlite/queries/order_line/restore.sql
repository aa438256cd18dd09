-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO order_line (purchase, line, user_id, sku_ref, quantity, place, unit_price)
VALUES (:purchase, :line, :user_id, :sku_ref, :quantity, :place, :unit_price);
