-- Counts cases. One row. Index: whichever is smallest.
SELECT count(*) FROM open_case;
