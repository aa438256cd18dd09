-- Finds the earliest due-time, or end of a lease, of a lane. Zero rows: the lane is empty or paused. Index: due_by_time, and
-- the primary key of lanes.
SELECT d.due_at
FROM due AS d
WHERE d.lane = $1 AND NOT EXISTS (SELECT FROM lane AS l WHERE l.lane = $1 AND l.paused)
ORDER BY d.due_at, d.seq
LIMIT 1;
