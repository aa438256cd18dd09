-- Changes a job. Guard: the revision it was decided on. Zero rows: the guard is lost; the caller reads what is there.
-- Index: the one on id.
UPDATE job SET
    status = :status, attempts = :attempts, not_before = :not_before, token = :token, worker = :worker,
    last_error = :last_error, is_refunded = :is_refunded, is_reclaimed = :is_reclaimed, updated_at = :updated_at,
    revision = revision + 1
WHERE id = :id AND revision = :revision;
