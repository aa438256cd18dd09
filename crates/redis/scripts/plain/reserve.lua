-- A reservation in the shape of the references (003 section 8.2): what others are measured against. Nobody serves with it.
--
-- KEYS: 1 stock, 2 reservation, 3 request, 4 user, 5 send_due, 6 counter
-- ARGV: 1 activity, 2 SKU, 3 user, 4 request, 5 reservation, 6 message
-- Returns: 1 reserved, 2 a repeat, -2 limit reached, -3 sold out
if redis.call('EXISTS', KEYS[3]) == 1 then return 2 end
if redis.call('EXISTS', KEYS[4]) == 1 then return -2 end
if tonumber(redis.call('GET', KEYS[1]) or '0') < 1 then return -3 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('DECR', KEYS[1])
redis.call('HSET', KEYS[2], 'status', 'RESERVED', 'mq_state', 'PENDING', 'activity_id', ARGV[1], 'sku_id', ARGV[2],
  'user_id', ARGV[3], 'request_id', ARGV[4], 'reservation_id', ARGV[5], 'message_id', ARGV[6], 'schema_version', 1,
  'reserved_at_ms', now, 'business_deadline_ms', now + 120000, 'send_attempts', 0, 'last_error', '')
redis.call('SET', KEYS[3], ARGV[5])
redis.call('SET', KEYS[4], ARGV[5])
redis.call('ZADD', KEYS[5], now, ARGV[5])
redis.call('HINCRBY', KEYS[6], 'open_reserved', 1)
return 1
