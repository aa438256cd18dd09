-- Moves the place of a flash purchase before the rest of a change is written, so that changes that keep the place touch
-- no index. Guard: the revision, and that the place is another one than the wanted one. Zero rows: it has the wanted one,
-- the revision is another one, or the purchase is direct. Index: the primary key; writes purchase_by_place.
UPDATE purchase SET place = :place
WHERE seq = :seq AND id = :id AND revision = :revision AND place <> :wanted;
