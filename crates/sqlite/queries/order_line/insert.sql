-- Adds a line of a direct order. Guarded by order_line_by_place: nobody holds the place. Zero rows cannot be: it is added,
-- or a constraint refuses it. Index: writes the primary key and order_line_by_place.
INSERT INTO order_line (purchase, line, user_id, sku_ref, quantity, place, unit_price)
VALUES (:purchase, :line, :user_id, :sku_ref, :quantity, :place, :unit_price);
