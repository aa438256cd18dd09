-- Finds due members of a lane, earliest first. Guarded by the write lock until due/lease.sql has marked them. Zero rows:
-- nothing is due. Index: due_by_time; members that are not due cost nothing.
SELECT seq, member, due_at, created_at, attempts, body
FROM due INDEXED BY due_by_time
WHERE lane = :lane AND due_at <= :now
ORDER BY due_at, seq
LIMIT :limit;
