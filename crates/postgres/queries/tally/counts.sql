-- Counts cases, messages that were set aside, group orders and their participants, credit accounts and entries. One row.
-- Index: none; the tables are read.
SELECT (SELECT count(*) FROM open_case), (SELECT count(*) FROM quarantine), (SELECT count(*) FROM group_order),
    (SELECT count(*) FROM participant), (SELECT count(*) FROM credit_account), (SELECT count(*) FROM credit_entry);
