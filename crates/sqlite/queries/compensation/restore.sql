-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO compensation_task (purchase, status, attempts, last_result, created_at, updated_at, revision)
VALUES (:purchase, :status, :attempts, :last_result, :created_at, :updated_at, :revision);
