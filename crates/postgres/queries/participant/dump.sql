-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    group_ref::BIGINT, user_id, amount::BIGINT, charge::BIGINT, provider_transaction, joined_at::BIGINT,
    updated_at::BIGINT, revision::BIGINT
FROM participant
WHERE (participant.group_ref, participant.user_id) > ($1::BIGINT, $2::TEXT)
ORDER BY participant.group_ref, participant.user_id LIMIT $3::BIGINT;
