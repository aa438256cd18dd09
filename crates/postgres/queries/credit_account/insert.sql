-- Adds credit accounts without entries. Guarded by their ids. As many rows as accounts, or a broken constraint.
-- Index: writes the one on id.
INSERT INTO credit_account (id, balance, entries, overdraft, created_at, updated_at, revision)
SELECT * FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[]);
