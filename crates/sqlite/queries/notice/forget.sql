-- Forgets a notice. Guard: it has not changed since it was seen. Zero rows: the guard is lost; it has changed, or is gone.
-- Index: the one on the id.
DELETE FROM notice WHERE id = :id AND updated_at = :at;
