-- Changes a compensation task. Guard: the revision it was decided on. Zero rows: the guard is lost; the caller reads what
-- is there. Index: the primary key.
UPDATE compensation_task SET
    status = :status, attempts = :attempts, last_result = :last_result, updated_at = :updated_at,
    revision = revision + 1
WHERE purchase = :purchase AND revision = :revision;
