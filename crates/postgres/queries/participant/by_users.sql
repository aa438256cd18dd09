-- Reads participants of groups. Guards nothing. Those that are not there take no part. Index: the one of group ids, then
-- the primary key.
WITH k AS MATERIALIZED (
    SELECT g.seq AS group_ref, g.id, g.currency, n.user_id
    FROM unnest($1::TEXT[], $2::TEXT[]) AS n (id, user_id) JOIN group_order AS g ON g.id = n.id
)
SELECT k.id, p.user_id, p.amount, k.currency, p.charge, p.provider_transaction, p.joined_at, p.updated_at, p.revision
FROM k JOIN participant AS p ON p.group_ref = k.group_ref AND p.user_id = k.user_id;
