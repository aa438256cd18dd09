-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    seq::BIGINT, purchase::BIGINT, at::BIGINT, kind::BIGINT, from_state::BIGINT, to_state::BIGINT, cause::BIGINT,
    actor::BIGINT, reference
FROM transition
WHERE transition.seq > $1::BIGINT
ORDER BY transition.seq LIMIT $2::BIGINT;
