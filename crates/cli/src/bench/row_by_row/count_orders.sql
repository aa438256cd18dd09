-- How many orders there are. Reads the whole table, after a run.
SELECT count(*) FROM orders;
