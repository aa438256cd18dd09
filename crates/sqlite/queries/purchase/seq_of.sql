-- Finds the handle behind an id. Guards nothing. Zero rows: there is no such purchase. Index: purchase_by_id.
SELECT seq FROM purchase WHERE id = :id;
