-- Counts credit accounts whose balance or count is not what their entries make, or an entry of which says another balance
-- or number than the entries until then. One row. Index: the primary key of the entries, all of it.
SELECT count(*)
FROM credit_account AS a
LEFT JOIN (
    SELECT s.account, count(*) AS entries, sum(s.amount) AS balance, count(*) FILTER (WHERE s.is_wrong) AS wrong
    FROM (
        SELECT account, amount,
            balance_after <> sum(amount) OVER until_then OR number <> row_number() OVER until_then AS is_wrong
        FROM credit_entry
        WINDOW until_then AS (PARTITION BY account ORDER BY number)
    ) AS s
    GROUP BY s.account
) AS e ON e.account = a.seq
WHERE a.balance <> coalesce(e.balance, 0) OR a.entries <> coalesce(e.entries, 0) OR e.wrong > 0;
