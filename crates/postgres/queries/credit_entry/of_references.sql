-- Reads the charges of accounts that belong to no job and have these references. Guards nothing. Those that are not there were
-- never charged. Index: credit_entry_once_per_reference; OFFSET keeps it one look for each pair.
SELECT e.number, e.kind, e.amount, e.balance_after, NULL::TEXT, e.reference, e.reason, w.text, e.created_at, a.id
FROM unnest($1::TEXT[], $2::TEXT[]) AS k (account, reference)
JOIN credit_account AS a ON a.id = k.account
CROSS JOIN LATERAL (
    SELECT * FROM credit_entry AS h
    WHERE h.account = a.seq AND h.reference = k.reference AND h.job IS NULL AND h.amount < 0 OFFSET 0
) AS e
JOIN word AS w ON w.word_ref = e.actor;
