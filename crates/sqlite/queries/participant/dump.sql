-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    group_ref, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision
FROM participant
WHERE (group_ref, user_id) > (:group_ref, :user_id)
ORDER BY group_ref, user_id
LIMIT :limit;
