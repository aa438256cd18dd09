-- Counts messages that were set aside. One row. Index: whichever is smallest.
SELECT count(*) FROM quarantine;
