-- Lists the members of a lane, oldest first, after a handle. Guards nothing. Zero rows: the list ends.
-- Index: due_by_arrival.
SELECT seq, member, due_at, created_at, attempts, body, leased, token
FROM due
WHERE lane = $1 AND seq > $2
ORDER BY seq
LIMIT $3;
