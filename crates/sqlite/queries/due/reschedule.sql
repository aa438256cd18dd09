-- Moves the due-time of a member that waits. Guard: no claim holds it. Zero rows: one does, or it is gone; the guard is lost.
-- Index: the one on lane and member; writes due_by_time.
UPDATE due SET due_at = :due_at WHERE lane = :lane AND member = :member AND leased = :waiting;
