-- Puts back how far the fencing tokens have come, and never takes them back: a sequence does not go with its transaction.
-- Guards nothing. One row for each. Index: none.
SELECT setval('due_token', greatest(d.value, s.last_value), d.value > 0 OR s.is_called)
FROM unnest($1::TEXT[], $2::BIGINT[]) AS d (name, value) CROSS JOIN due_token AS s WHERE d.name = 'token';
