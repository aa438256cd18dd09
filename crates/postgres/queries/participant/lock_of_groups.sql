-- Locks every participant of groups, by group and user. Guards the decision that follows. Zero rows: nobody takes part.
-- Index: the one of group ids, then the primary key.
SELECT 1
FROM group_order AS g JOIN participant AS p ON p.group_ref = g.seq
WHERE g.id = ANY ($1::TEXT[])
ORDER BY p.group_ref, p.user_id
FOR NO KEY UPDATE OF p;
