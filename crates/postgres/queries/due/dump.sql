-- The rows behind a key, in its order, for a dump. Guards nothing. Zero rows: that was the last. Index: the one by member.
SELECT
    lane::BIGINT, member, seq::BIGINT, due_at::BIGINT, created_at::BIGINT, attempts::BIGINT, token::BIGINT,
    leased::INTEGER::BIGINT, body
FROM due
WHERE (due.lane, due.member) > ($1::BIGINT, $2::TEXT)
ORDER BY due.lane, due.member LIMIT $3::BIGINT;
