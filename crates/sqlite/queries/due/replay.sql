-- Moves an exhausted member back into its lane, with fresh tries. Guard: it is exhausted by this claim. Zero rows: it was
-- replayed already, or exhausted again since; the guard is lost. Index: the one on lane and member; writes all three.
UPDATE OR REPLACE due SET lane = :lane, due_at = :due_at, attempts = :attempts
WHERE lane = :dead AND member = :member AND token = :token;
