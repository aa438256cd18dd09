-- Counts participants who pay out of a wallet and whose ledger entry is not what their charge says: one of the amount where
-- it was charged, none where it was not. The reference is the charge's id, as the view group_charge writes it. Who pays by
-- wallet and the state are bound. One row. Index: the one of account ids, then credit_entry_once_per_reference.
SELECT count(*)
FROM group_order AS g
JOIN participant AS p ON p.group_ref = g.seq
WHERE g.charge_via = $1::TEXT
    AND coalesce((
        SELECT -e.amount
        FROM credit_account AS a
        JOIN credit_entry AS e ON e.account = a.seq
        WHERE a.id = p.user_id AND e.job IS NULL AND e.amount < 0
            AND e.reference = 'settle:' || replace(g.id, ':', '%3A') || ':' || p.user_id
    ), 0) <> (p.charge = $2::SMALLINT)::INTEGER * p.amount;
