-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO group_order (
    seq, id, leader, deadline, charge_via, currency, min_participants, status, participants, attempts, retries,
    next_attempt_at, last_error, created_at, updated_at, revision)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.id, d.leader, d.deadline, d.charge_via, d.currency, d.min_participants, d.status, d.participants,
    d.attempts, d.retries, d.next_attempt_at, d.last_error, d.created_at, d.updated_at, d.revision
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::TEXT[], $14::BIGINT[], $15::BIGINT[],
    $16::BIGINT[])
    WITH ORDINALITY AS d (
        seq, id, leader, deadline, charge_via, currency, min_participants, status, participants, attempts, retries,
        next_attempt_at, last_error, created_at, updated_at, revision, ord)
ORDER BY d.ord;
