-- Adds ledger entries, in their order. Guarded by stock_entry_once and stock_entry_by_adjustment: no cause moves stock twice.
-- Fewer rows: a purchase is not there. Index: purchase_by_id; writes one of the two.
INSERT INTO stock_entry (sku_ref, purchase, adjustment, cause, available, occupied, sold, note, at)
SELECT c.sku_ref, p.seq, c.adjustment, c.cause, c.available, c.occupied, c.sold, c.note, c.at
FROM unnest($1::INTEGER[], $2::UUID[], $3::UUID[], $4::INTEGER[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::TEXT[],
    $9::BIGINT[]) WITH ORDINALITY
    AS c (sku_ref, id, adjustment, cause, available, occupied, sold, note, at, ord)
LEFT JOIN purchase AS p ON p.id = c.id
WHERE c.id IS NULL OR p.seq IS NOT NULL
ORDER BY c.ord;
