-- Makes a bucket that is not there, closed, with everything free; the decisions of the store are projected onto it before
-- it is opened (FS-18). Where it is there, it only says so.
--
-- KEYS: 1 counter
-- ARGV: 1 units, 2 adjustments that are in them, 3 limit, 4 start and 5 end of the sale, 6 how long a reservation may wait
--       for its order, 7 a clock's milliseconds, or '', 8 a name that no other bucket has had
-- Returns: the epoch, the server's present history, and the name that it was made under: after a loss it is another bucket
--       of the same epoch. Safe to run twice: what is there is left alone.
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local made = redis.call('HMGET', KEYS[1], 'epoch', 'made')
if made[1] then return { tonumber(made[1]), history, made[2] or '' } end
local now = ARGV[7]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
redis.call('HSET', KEYS[1], 'epoch', 0, 'history', '', 'initial', ARGV[1], 'available', ARGV[1], 'open_reserved', 0,
  'committed', 0, 'adjustments', ARGV[2], 'limit', ARGV[3], 'starts', ARGV[4], 'ends', ARGV[5], 'wait', ARGV[6],
  'stamp', 0, 'token', 0, 'since', now, 'made', ARGV[8])
return { 0, history, ARGV[8] }
