-- Adds a member to a lane. Guarded by the uniqueness of lane and member, and by its absence from the exhausted set. Zero
-- rows: it is in one of them already, and nothing happens. Index: the one on lane and member; writes all three.
INSERT INTO due (lane, member, due_at, created_at, attempts, token, leased, body)
SELECT :lane, :member, :due_at, :created_at, :attempts, :token, :leased, :body
WHERE NOT EXISTS (SELECT seq FROM due WHERE lane = :dead AND member = :member)
ON CONFLICT (lane, member) DO NOTHING;
