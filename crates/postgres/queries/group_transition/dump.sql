-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, group_ref::BIGINT, at::BIGINT, from_state::BIGINT, to_state::BIGINT, cause::BIGINT, actor::BIGINT
FROM group_transition
WHERE group_transition.seq > $1::BIGINT
ORDER BY group_transition.seq LIMIT $2::BIGINT;
