-- Adds a part of a held member to the exhausted set, under the token that met it. Guarded by the uniqueness of lane and
-- member, and by the caller's check of the claim. Zero rows: it is there already, and nothing happens. Index: writes all three.
INSERT INTO due (lane, member, due_at, created_at, attempts, token, leased, body)
VALUES (:dead, :member, :now, :now, :attempts, :token, :waiting, :body)
ON CONFLICT (lane, member) DO NOTHING;
