-- Counts group orders and their participants. One row. Index: none; both tables are read.
SELECT (SELECT count(*) FROM group_order), (SELECT count(*) FROM participant);
