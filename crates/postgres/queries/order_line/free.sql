-- Gives the places free that lines will not keep, so that within one set all that is given free is free before anything is
-- taken. Guards nothing: the move that follows is guarded. Fewer rows: they hold none, or keep it.
-- Index: the primary key; writes order_line_by_place.
UPDATE order_line AS l SET place = -1
FROM unnest($1::BIGINT[], $2::INTEGER[], $3::BIGINT[]) AS c (purchase, line, wanted)
WHERE l.purchase = c.purchase AND l.line = c.line AND l.place >= 0 AND l.place <> c.wanted;
