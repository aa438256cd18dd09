-- Takes participants out. Guard: the revision they were decided on; a trigger refuses one whose charge has begun. Fewer rows:
-- a guard is lost; the caller reads what is there. Index: the one of group ids, then the primary key.
WITH c AS MATERIALIZED (
    SELECT g.seq AS group_ref, n.user_id, n.revision
    FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS n (id, user_id, revision)
    JOIN group_order AS g ON g.id = n.id
)
DELETE FROM participant AS p
USING c
WHERE p.group_ref = c.group_ref AND p.user_id = c.user_id AND p.revision = c.revision;
