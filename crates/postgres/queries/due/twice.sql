-- Looks whether a member that was put stands in its lane and in the exhausted set, because somebody exhausted it at the same
-- moment. Zero rows: none does; otherwise the guard is lost. Index: due_once.
SELECT 1
FROM unnest($1::INTEGER[], $2::TEXT[], $3::INTEGER[]) AS c (lane, member, dead)
JOIN due AS d ON d.lane = c.dead AND d.member = c.member
JOIN due AS l ON l.lane = c.lane AND l.member = c.member;
