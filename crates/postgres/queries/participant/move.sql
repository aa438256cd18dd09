-- Changes participants: the amount while the group is open, the charge afterwards. Guard: the revision they were decided on.
-- Fewer rows: a guard is lost; the caller reads what is there. Index: the one of group ids, then the primary key.
WITH c AS MATERIALIZED (
    SELECT g.seq AS group_ref, n.*
    FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::SMALLINT[], $6::TEXT[], $7::BIGINT[])
        AS n (id, user_id, revision, amount, charge, provider_transaction, updated_at)
    JOIN group_order AS g ON g.id = n.id
)
UPDATE participant AS p SET
    amount = c.amount, charge = c.charge, provider_transaction = c.provider_transaction, updated_at = c.updated_at,
    revision = p.revision + 1
FROM c
WHERE p.group_ref = c.group_ref AND p.user_id = c.user_id AND p.revision = c.revision;
