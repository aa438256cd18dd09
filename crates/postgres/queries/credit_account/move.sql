-- Moves credit accounts to the last of their entries, which are there by now. Guard: the revision they were decided on. Fewer
-- rows: a guard is lost; the caller reads what is there. Index: the one on id.
UPDATE credit_account AS a SET
    balance = c.balance, entries = c.entries, overdraft = c.overdraft, updated_at = c.updated_at,
    revision = a.revision + 1
FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[])
    AS c (id, revision, balance, entries, overdraft, updated_at)
WHERE a.id = c.id AND a.revision = c.revision;
