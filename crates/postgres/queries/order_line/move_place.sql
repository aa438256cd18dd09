-- Moves the places of lines. Guarded by order_line_by_place, and by the move of the purchase. Fewer rows: they stand there
-- already, or the purchase has no lines. Index: the primary key; writes order_line_by_place.
UPDATE order_line AS l SET place = c.place
FROM unnest($1::BIGINT[], $2::INTEGER[], $3::BIGINT[]) AS c (purchase, line, place)
WHERE l.purchase = c.purchase AND l.line = c.line AND l.place <> c.place;
