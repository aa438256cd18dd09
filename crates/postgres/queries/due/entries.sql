-- Loads members for a decision. Guards nothing; the changes that follow are guarded. Those that are not there are not in the
-- lane. Index: due_once.
SELECT k.ord, d.due_at, d.created_at, d.attempts, d.token, d.leased, d.body
FROM unnest($1::INTEGER[], $2::TEXT[]) WITH ORDINALITY AS k (lane, member, ord)
JOIN due AS d ON d.lane = k.lane AND d.member = k.member;
