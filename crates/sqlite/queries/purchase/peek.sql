-- Reads what is there when a guard is lost, for the operator. Zero rows: there is no such purchase.
-- Index: purchase_by_id.
SELECT seq, revision, admission, reservation, order_status FROM purchase WHERE id = :id;
