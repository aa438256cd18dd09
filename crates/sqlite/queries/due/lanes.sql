-- Counts the members of every lane. Guards nothing. Zero rows: no lane has members. Index: none, it reads the table.
SELECT lane, count(*), sum(leased <> :waiting AND due_at > :now), min(due_at), min(created_at)
FROM due GROUP BY lane;
