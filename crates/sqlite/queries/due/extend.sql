-- Lengthens a lease. Guard: the token still holds the member. Zero rows: the claim is lost; the caller reads what is
-- there. Index: the one on lane and member; writes due_by_time.
UPDATE due SET due_at = :lease_until
WHERE lane = :lane AND member = :member AND token = :token AND leased = :leased;
