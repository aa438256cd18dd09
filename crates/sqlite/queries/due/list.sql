-- Lists the members of a lane, oldest first, after a handle. Guards nothing. Zero rows: the list ends.
-- Index: due_by_arrival.
SELECT seq, member, due_at, created_at, attempts, body, leased, token
FROM due INDEXED BY due_by_arrival
WHERE lane = :lane AND seq > :after
ORDER BY seq
LIMIT :limit;
