-- Finds the earliest due-time, or end of a lease, of a lane. One row; its value is NULL where the lane is empty.
-- Index: due_by_time.
SELECT min(due_at) FROM due WHERE lane = :lane;
