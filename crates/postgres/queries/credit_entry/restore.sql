-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO credit_entry (
    account, number, kind, amount, balance_after, job, reference, reason, actor, created_at)
SELECT
    d.account, d.number, d.kind, d.amount, d.balance_after, d.job, d.reference, d.reason, d.actor, d.created_at
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], $8::TEXT[],
    $9::BIGINT[], $10::BIGINT[])
    WITH ORDINALITY AS d (
        account, number, kind, amount, balance_after, job, reference, reason, actor, created_at, ord)
ORDER BY d.ord;
