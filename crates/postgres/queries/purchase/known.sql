-- Says which of these ids have a row. Guards nothing. Those that are not there are missing. Index: purchase_by_id.
SELECT id FROM purchase WHERE id = ANY ($1::UUID[]);
