-- One lane at a glance.
--
-- KEYS: 1 due, 2 work, 3 age, 4 lane
-- ARGV: 1 a clock's milliseconds, or '' for the server's own
-- Returns: how much is in it, how much of that is held, whether it is paused (1, 0); then the earliest due-time, when the
--       oldest was put in, and when something was last given out, each '' where there is none; and the time. Reads only.
local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local lane = redis.call('HMGET', KEYS[4], 'leased', 'paused', 'last_claim')
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)
local entry = oldest[1] and redis.call('HGET', KEYS[2], oldest[1])
-- What cannot be read is set aside when it is due.
local put = entry and #entry >= 21 and string.format('%.0f', (struct.unpack('>I8', entry, 14))) or ''
local due = first[2] and string.format('%.0f', tonumber(first[2])) or ''
return { redis.call('ZCARD', KEYS[1]), tonumber(lane[1] or 0), lane[2] and 1 or 0, due, put, lane[3] or '', now }
