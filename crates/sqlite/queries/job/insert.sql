-- Adds a job. Guarded by its id. One row, or a broken constraint. Index: writes the one on id.
INSERT INTO job (id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error,
    is_refunded, is_reclaimed, created_at, updated_at, revision)
VALUES (:id, :account, :cost, :max_attempts, :payload, :status, :attempts, :not_before, :token, :worker, :last_error,
    :is_refunded, :is_reclaimed, :created_at, :updated_at, :revision);
