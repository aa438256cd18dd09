-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the primary key.
SELECT
    lane::BIGINT, paused::INTEGER::BIGINT, last_claim::BIGINT
FROM lane
WHERE lane.lane > $1::BIGINT
ORDER BY lane.lane LIMIT $2::BIGINT;
