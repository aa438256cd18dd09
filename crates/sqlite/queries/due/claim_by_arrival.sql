-- Finds the head of a lane that gives out its members strictly in order of arrival; the caller stops at the first that is
-- not due. Guarded by the write lock until due/lease.sql has marked them. Zero rows: the lane is empty.
-- Index: due_by_arrival.
SELECT seq, member, due_at, created_at, attempts, body
FROM due INDEXED BY due_by_arrival
WHERE lane = :lane
ORDER BY seq
LIMIT :limit;
