-- Reads group orders. Guards nothing. Those that are not there are missing. Index: the one of ids.
SELECT g.seq, g.id, g.leader, g.deadline, g.charge_via, g.currency, g.min_participants, g.status, g.participants,
    g.attempts, g.retries, g.next_attempt_at, g.last_error, g.created_at, g.updated_at, g.revision
FROM group_order AS g
WHERE g.id = ANY ($1::TEXT[]);
