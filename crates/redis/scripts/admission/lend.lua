-- Takes free units out of a bucket for another one of the same SKU, whose slot may be elsewhere (FS-19). What is on its way
-- is written down here until it has arrived.
--
-- KEYS: 1 counter, 2 loans
-- ARGV: 1 the loan's name, which nobody else has; 2 the number of the bucket that borrows; 3 units that are wanted
-- Returns: units that were taken: at least what is wanted, up to half of what is free, and never more than that; 0 where
--       nothing is free. A second run answers the same and takes nothing.
local known = redis.call('HGET', KEYS[2], ARGV[1])
if known then return tonumber(string.match(known, ':(%d+)$')) end
local counter = redis.call('HMGET', KEYS[1], 'available', 'initial')
local available = tonumber(counter[1] or 0)
if available <= 0 then return 0 end
local units = math.min(available, math.max(tonumber(ARGV[3]), math.floor(available / 2)))
redis.call('HSET', KEYS[1], 'available', available - units, 'initial', counter[2] - units)
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ':' .. units)
return units
