-- Takes work out of a lane, whoever holds it; exhausted work stays.
--
-- KEYS: 1 due, 2 work, 3 age, 4 lane
-- ARGV: members
-- Returns: for each 1 removed, 0 not there. Safe to run twice. Bounded by what comes.
if #ARGV == 0 then return {} end
local found = redis.call('HMGET', KEYS[2], unpack(ARGV))
local answers, gone, freed, seen = {}, {}, 0, {}
for i, member in ipairs(ARGV) do
  answers[i] = 0
  if found[i] and not seen[member] then
    seen[member] = true
    gone[#gone + 1] = member
    if string.sub(found[i], 1, 1) == '1' then
      freed = freed + 1
    end
    answers[i] = 1
  end
end
if #gone > 0 then
  redis.call('HDEL', KEYS[2], unpack(gone))
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('ZREM', KEYS[3], unpack(gone))
  if freed > 0 then
    redis.call('HINCRBY', KEYS[4], 'leased', -freed)
  end
end
return answers
