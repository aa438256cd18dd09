-- Locks participants, by group and user. Guards the decision that follows. Rows that are not there are missing.
-- Index: the one of group ids, then the primary key.
WITH k AS MATERIALIZED (
    SELECT g.seq AS group_ref, n.user_id
    FROM unnest($1::TEXT[], $2::TEXT[]) AS n (id, user_id) JOIN group_order AS g ON g.id = n.id
)
SELECT 1
FROM k JOIN participant AS p ON p.group_ref = k.group_ref AND p.user_id = k.user_id
ORDER BY p.group_ref, p.user_id
FOR NO KEY UPDATE OF p;
