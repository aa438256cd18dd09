-- Reads what is there when a guard is lost, for the operator. Zero rows: there is no such task. Index: the primary key.
SELECT revision FROM compensation_task WHERE purchase = :purchase;
