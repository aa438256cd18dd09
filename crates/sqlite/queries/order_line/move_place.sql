-- Moves the place of a line. Guard: that it is another one than the wanted one. Zero rows: it is there already.
-- Index: the primary key; writes order_line_by_place.
UPDATE order_line SET place = :place WHERE purchase = :purchase AND line = :line AND place <> :wanted;
