-- Moves the reservation without an order; what is not said (reason, inbox) stays. Guard: the revision it was decided on, and the place it has.
-- Zero rows: the place moves too (purchase/move_place.sql comes first, then this again), or the guard is lost; the caller
-- reads what is there. Index: the primary key; no other index is written.
UPDATE purchase SET
    reservation = :reservation, reason = coalesce(:reason, reason),
    inbox_result = coalesce(:inbox_result, inbox_result), payload_hash = coalesce(:payload_hash, payload_hash),
    updated_at = :at, revision = revision + 1
WHERE seq = :seq AND id = :id AND revision = :revision AND place IS :place;
