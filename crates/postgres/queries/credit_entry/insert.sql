-- Appends ledger entries in their order. Guarded by their number, by their job and kind or their reference, and by the trigger
-- that lets each only go on from the entry before it. Fewer rows: an account is not there. Index: writes the primary key and
-- one of the two others.
INSERT INTO credit_entry
    (account, number, kind, amount, balance_after, job, reference, reason, actor, created_at)
SELECT a.seq, c.number, c.kind, c.amount, c.balance_after, j.seq, c.reference, c.reason, c.actor, c.created_at
FROM unnest(
    $1::TEXT[], $2::BIGINT[], $3::SMALLINT[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::TEXT[], $8::TEXT[],
    $9::INTEGER[], $10::BIGINT[]) WITH ORDINALITY
    AS c (account, number, kind, amount, balance_after, job, reference, reason, actor, created_at, ord)
JOIN credit_account AS a ON a.id = c.account
LEFT JOIN job AS j ON j.id = c.job
ORDER BY c.ord;
