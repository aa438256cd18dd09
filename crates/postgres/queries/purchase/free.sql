-- Gives the places free that flash purchases will not keep, so that within one set all that is given free is free before
-- anything is taken. Guards nothing: the move that follows is guarded. Fewer rows: they hold none, or keep it.
-- Index: the primary key; writes purchase_by_place.
UPDATE purchase AS p SET place = -1
FROM unnest($1::BIGINT[], $2::BIGINT[]) AS c (seq, wanted)
WHERE p.seq = c.seq AND p.place >= 0 AND p.place <> c.wanted;
