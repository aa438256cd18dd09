-- Tells an open bucket of its SKU's present limit: it applies to whoever comes from then on.
--
-- KEYS: 1 counter
-- ARGV: 1 the limit
-- Returns: 1, or 0 where the bucket was never opened. Safe to run twice.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'limit', ARGV[1])
return 1
