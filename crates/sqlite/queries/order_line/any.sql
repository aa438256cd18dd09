-- Says whether the store has ever seen a direct order; where it has not, nobody need look for lines. One row.
-- Index: the first entry of the primary key.
SELECT EXISTS (SELECT 1 FROM order_line);
