-- Loads a member for a decision. Guards nothing; the changes that follow are guarded. Zero rows: it is not in the lane.
-- Index: the one on lane and member.
SELECT due_at, created_at, attempts, token, leased, body FROM due WHERE lane = :lane AND member = :member;
