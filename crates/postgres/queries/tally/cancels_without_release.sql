-- Counts cancelled orders whose release is not exactly one ledger entry for each line. One row.
-- Index: stock_entry_once and the primary key of the lines, once for each cancelled order.
SELECT count(*) FROM purchase AS p
WHERE p.order_status = $1
    AND (SELECT count(*) FROM stock_entry AS e JOIN word AS w ON w.word_ref = e.cause
            WHERE e.purchase = p.seq AND w.text = $2)
        <> (p.sku_ref IS NOT NULL)::INTEGER + (SELECT count(*) FROM order_line AS l WHERE l.purchase = p.seq);
