-- Ends a telling of an order's deadline, only for who still holds it (LQ-02).
--
-- KEYS: 1 the key of this telling, 2 the key of the telling before it; both of one order
-- ARGV: 1 what the holder wrote into it; 2 milliseconds until it is to be told again, or '' where it is acknowledged
-- Returns: 1 it was held, 0 it was not. A second run finds it lost. Bounded: two keys.
--
-- To be early costs no attempt, and attempts are in the key's name: so it is the key before that runs out then.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' then
  redis.call('SET', KEYS[2], '', 'PX', math.max(tonumber(ARGV[2]), 1))
end
return 1
