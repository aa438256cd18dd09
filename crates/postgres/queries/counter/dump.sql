-- How far each counter has come, for a dump: the fencing tokens. The embedded store has a table of them. Guards nothing. Zero
-- rows: that was the last. Index: none.
SELECT c.name, c.value
FROM (SELECT 'token' AS name, CASE WHEN is_called THEN last_value ELSE 0 END AS value FROM due_token) AS c
WHERE c.name > $1::TEXT ORDER BY c.name LIMIT $2::BIGINT;
