-- Adds group orders. Guarded by their ids. As many rows as groups, or a broken constraint. Index: writes the one of ids.
INSERT INTO group_order (id, leader, deadline, charge_via, currency, min_participants, status, participants, attempts,
    retries, next_attempt_at, last_error, created_at, updated_at, revision)
SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::SMALLINT[], $6::BIGINT[], $7::SMALLINT[],
    $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::TEXT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[]);
