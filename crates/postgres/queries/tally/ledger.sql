-- Sums the ledger's moves of free units by SKU. Guards nothing. Zero rows: there are no entries.
-- Index: none, it reads everything.
SELECT sku_ref, sum(available)::BIGINT FROM stock_entry GROUP BY sku_ref;
