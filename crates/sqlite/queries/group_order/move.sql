-- Changes a group order; its terms never change. Guard: the revision it was decided on. Zero rows: the guard is lost; the
-- caller reads what is there. Index: the one of ids.
UPDATE group_order SET
    status = :status, participants = :participants, attempts = :attempts, retries = :retries,
    next_attempt_at = :next_attempt_at, last_error = :last_error, updated_at = :updated_at, revision = revision + 1
WHERE id = :id AND revision = :revision;
