-- Leaves the task of giving the admission back. Zero rows: it is there already. Guarded by the idempotency key.
INSERT INTO compensation_task (task_id, reservation_id, compensation_type, idempotency_key)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (idempotency_key) DO NOTHING;
