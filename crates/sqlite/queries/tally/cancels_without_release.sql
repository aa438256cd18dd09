-- Counts cancelled orders whose release is not exactly one ledger entry for each line. One row.
-- Index: stock_entry_once and the primary key of the lines, once for each cancelled order.
SELECT count(*) FROM purchase AS p
WHERE p.order_status = :cancelled
    AND (SELECT count(*) FROM stock_entry AS e WHERE e.purchase = p.seq AND e.cause = :release)
        <> (p.sku_ref IS NOT NULL) + (SELECT count(*) FROM order_line AS l WHERE l.purchase = p.seq);
