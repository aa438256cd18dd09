-- Moves the due-times of members that wait. Guard: no claim holds them. Fewer rows: one does, or it is gone; the guard is lost.
-- Index: due_once; writes all three.
UPDATE due AS d SET due_at = c.due_at
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[]) AS c (lane, member, due_at)
WHERE d.lane = c.lane AND d.member = c.member AND NOT d.leased;
