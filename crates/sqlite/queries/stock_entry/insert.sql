-- Adds a ledger entry. Guarded by stock_entry_once and stock_entry_by_adjustment: no cause moves stock twice. Zero rows
-- cannot be: it is added, or a constraint refuses it. Index: writes one of the two.
INSERT INTO stock_entry (sku_ref, purchase, adjustment, cause, available, occupied, sold, note, at)
VALUES (:sku_ref, :purchase, :adjustment, :cause, :available, :occupied, :sold, :note, :at);
