-- Gives a member back for later. Guard: the token still holds it. Zero rows: the claim is lost; the caller reads what is
-- there. Index: the one on lane and member; writes due_by_time.
UPDATE due SET
    due_at = :due_at, leased = :waiting, attempts = max(attempts - :refund, 0), body = coalesce(:body, body)
WHERE lane = :lane AND member = :member AND token = :token AND leased = :leased;
