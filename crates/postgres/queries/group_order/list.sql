-- Lists group orders, newest first, from a handle down. Guards nothing. Zero rows: the list ends.
-- Index: the primary key, backwards; a rare state is found by reading past the others.
SELECT g.seq, g.id, g.leader, g.deadline, g.charge_via, g.currency, g.min_participants, g.status, g.participants,
    g.attempts, g.retries, g.next_attempt_at, g.last_error, g.created_at, g.updated_at, g.revision
FROM group_order AS g
WHERE g.seq < $1 AND ($2::SMALLINT IS NULL OR g.status = $2)
ORDER BY g.seq DESC
LIMIT $3;
