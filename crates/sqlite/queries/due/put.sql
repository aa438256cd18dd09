-- Adds a member to a lane. Guarded by the uniqueness of lane and member. Zero rows: it is there already, and nothing
-- happens. Index: writes all three.
INSERT INTO due (lane, member, due_at, created_at, attempts, token, leased, body)
VALUES (:lane, :member, :due_at, :created_at, :attempts, :token, :leased, :body)
ON CONFLICT (lane, member) DO NOTHING;
