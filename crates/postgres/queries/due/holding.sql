-- Finds the members of a lane whose packed body may hold an id; the caller unpacks and looks. Zero rows: none does.
-- Index: due_by_arrival, then every body of the lane: for a person or a repair, not for the hot path.
SELECT seq, member, due_at, created_at, attempts, body, leased, token
FROM due
WHERE lane = $1 AND position($2::BYTEA IN body) > 0
ORDER BY seq;
