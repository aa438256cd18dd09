-- Moves admission's view; a compensation that is not said stays. Guard: the revision it was decided on, and the place it has.
-- Zero rows: the place moves too (purchase/move_place.sql comes first, then this again), or the guard is lost; the caller
-- reads what is there. Index: the primary key; no other index is written.
UPDATE purchase SET
    admission = :admission, compensation = coalesce(:compensation, compensation), updated_at = :at,
    revision = revision + 1
WHERE seq = :seq AND id = :id AND revision = :revision AND place IS :place;
