-- Counts the members of every lane. Guards nothing. Zero rows: no lane has members. Index: none, it reads the table.
SELECT w.text, count(*), count(*) FILTER (WHERE d.leased AND d.due_at > $1), min(d.due_at), min(d.created_at)
FROM due AS d JOIN word AS w ON w.word_ref = d.lane
GROUP BY w.text;
