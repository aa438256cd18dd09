-- Opens a bucket that holds what the store has decided, under the next epoch (FS-18).
--
-- KEYS: 1 counter
-- ARGV: 1 the epoch and 2 the server's history as they were before the decisions were projected, 3 limit, 4 a clock's
--       milliseconds, or '', 5 the name that the bucket was made under
-- Returns: the new epoch; 0 where any of them has changed since, or the bucket is gone: then all of it is done again.
-- A second run returns 0 and changes nothing.
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local counter = redis.call('HMGET', KEYS[1], 'epoch', 'made')
local epoch = counter[1]
if not epoch or epoch ~= ARGV[1] or history ~= ARGV[2] or (counter[2] or '') ~= ARGV[5] then return 0 end
local now = ARGV[4]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
redis.call('HSET', KEYS[1], 'epoch', epoch + 1, 'history', history, 'limit', ARGV[3], 'since', now)
return epoch + 1
