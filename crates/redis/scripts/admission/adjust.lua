-- Applies adjustments of the stock of record to the bucket that keeps its SKU's adjustments, in their order (FS-13).
--
-- KEYS: 1 counter
-- ARGV: 1 units; 2 the number of the adjustment, or of the last one of several; 3 the number before them
-- Returns: -1 where the bucket was never opened; 1 applied, 0 applied before, 2 an earlier one is missing
-- Safe to run twice: the number says so.
local counter = redis.call('HMGET', KEYS[1], 'adjustments', 'initial', 'available')
if not counter[1] then return -1 end
local last = tonumber(counter[1])
if tonumber(ARGV[2]) <= last then return 0 end
if tonumber(ARGV[3]) ~= last then return 2 end
redis.call('HSET', KEYS[1], 'adjustments', ARGV[2], 'initial', counter[2] + ARGV[1], 'available', counter[3] + ARGV[1])
return 1
