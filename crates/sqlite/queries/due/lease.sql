-- Marks a member as claimed: its due-time becomes the end of the lease. Guarded by the write lock since it was found. Zero
-- rows cannot be. Index: the primary key; writes due_by_time.
UPDATE due SET due_at = :lease_until, leased = :leased, attempts = :attempts, token = :token
WHERE seq = :seq;
