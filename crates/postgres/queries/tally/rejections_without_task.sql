-- Counts purchases in the states of the mask that have no compensation task. One row.
-- Index: the primary key of the tasks, once for each such purchase.
SELECT count(*) FROM purchase AS p
WHERE p.reservation IS NOT NULL AND ($1::INTEGER >> p.reservation) & 1 = 1
    AND NOT EXISTS (SELECT FROM compensation_task AS t WHERE t.purchase = p.seq);
