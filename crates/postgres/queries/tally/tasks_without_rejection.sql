-- Counts compensation tasks whose purchase is outside the states of the mask. One row.
-- Index: the primary key of the purchases, once for each task.
SELECT count(*) FROM compensation_task AS t JOIN purchase AS p ON p.seq = t.purchase
WHERE p.reservation IS NULL OR ($1::INTEGER >> p.reservation) & 1 = 0;
