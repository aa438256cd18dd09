-- Moves a member into the exhausted set, with its counter cleared; it keeps the token, which names the exhaustion. Guard: the
-- token still holds it. Zero rows: the claim is lost; the caller reads what is there.
-- Index: the one on lane and member; writes all three.
UPDATE OR REPLACE due SET lane = :dead, due_at = :now, attempts = :attempts, leased = :waiting
WHERE lane = :lane AND member = :member AND token = :token AND leased = :leased;
