-- Adds participants. Guarded by group and user. Fewer rows: a group is not there. Index: the one of group ids; writes the
-- primary key.
INSERT INTO participant (group_ref, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision)
SELECT g.seq, c.user_id, c.amount, c.charge, c.provider_transaction, c.joined_at, c.updated_at, c.revision
FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::SMALLINT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[])
    AS c (id, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision)
JOIN group_order AS g ON g.id = c.id;
