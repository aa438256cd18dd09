-- What time it is by the clock of a bucket's own server.
--
-- KEYS: 1 counter
-- ARGV: none
-- Returns: seconds and microseconds, as TIME does. Reads only.
return redis.call('TIME')
