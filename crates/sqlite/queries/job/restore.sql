-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO job (
    seq, id, account, cost, max_attempts, payload, status, attempts, not_before, token, worker, last_error,
    is_refunded, is_reclaimed, created_at, updated_at, revision)
VALUES (
    :seq, :id, :account, :cost, :max_attempts, :payload, :status, :attempts, :not_before, :token, :worker,
    :last_error, :is_refunded, :is_reclaimed, :created_at, :updated_at, :revision);
