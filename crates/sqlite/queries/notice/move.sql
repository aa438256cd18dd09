-- Changes a notice. Guard: the revision it was decided on. Zero rows: the guard is lost; the caller reads what is there.
-- Index: the one on the id.
UPDATE notice SET status = :status, updated_at = :updated_at, revision = revision + 1
WHERE id = :id AND revision = :revision;
