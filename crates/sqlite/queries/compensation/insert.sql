-- Adds a compensation task. Guarded by the primary key: one task for each purchase. Zero rows cannot be.
-- Index: the primary key.
INSERT INTO compensation_task (purchase, status, attempts, last_result, created_at, updated_at, revision)
VALUES (:purchase, :status, :attempts, :last_result, :created_at, :updated_at, :revision);
