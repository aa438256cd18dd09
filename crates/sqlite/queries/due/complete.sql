-- Removes a member. Guard: the token still holds it. Zero rows: the claim is lost; the caller reads what is there.
-- Index: the one on lane and member.
DELETE FROM due WHERE lane = :lane AND member = :member AND token = :token AND leased = :leased;
