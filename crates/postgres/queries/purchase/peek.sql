-- Reads what is there when a guard is lost, for the operator. Zero rows: there is no such purchase.
-- Index: purchase_by_id.
SELECT revision FROM purchase WHERE id = $1;
