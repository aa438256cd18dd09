-- Brings exhausted work back into its lane, due at once, with fresh tries (LQ-05); only a person asks for it.
--
-- KEYS: 1 due, 2 work, 3 dead, 4 age, 5 lane, 6 exhausted
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; then for each: member, the token under which it was exhausted
-- Returns: for each 1 revived, 0 it is not exhausted by that claim. Safe to run twice. Bounded by what comes.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local answers = {}
for at = 2, #ARGV, 2 do
  local member = ARGV[at]
  local entry = redis.call('HGET', KEYS[3], member)
  if (not entry or #entry < 21) and redis.call('ZSCORE', KEYS[6], member) then
    -- As it was shown: whole, behind a head that can be read.
    entry = '0' .. string.rep('\0', 20) .. (entry or '')
  end
  if entry and struct.unpack('>I8', entry, 6) == tonumber(ARGV[at + 1]) then
    redis.call('HDEL', KEYS[3], member)
    redis.call('ZREM', KEYS[6], member)
    redis.call('HSET', KEYS[2], member, entry)
    redis.call('ZADD', KEYS[1], now, member)
    redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[5], 'puts', 1), member)
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
end
return answers
