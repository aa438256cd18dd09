-- Puts units that another bucket has lent into this one, once (FS-19).
--
-- KEYS: 1 counter, 2 borrowed
-- ARGV: 1 the loan's name, 2 units
-- Returns: 1 put in, 0 put in before, -1 the bucket was never opened: then the loan waits at the lender.
-- A second run changes nothing: names are kept. A loan takes half of what is free, so there are few of them.
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
if redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'available', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'initial', ARGV[2])
return 1
