-- Ends claims of a lane, or lengthens them, each only for its present token; one that is lost does not touch the others
-- (LQ-02, LQ-04, LQ-06).
--
-- KEYS: 1 due, 2 work, 3 dead, 4 age, 5 lane, 6 exhausted, 7 announce
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; then for each: member, token, how, value
--       how: 'complete'; 'extend' by value milliseconds from now; 'back' for value milliseconds, the attempt is not charged;
--       'retry' with value 'allowed:w1,w2,..': the attempts that are allowed (or '' for ever) and the wait after the first,
--       second and so on; the last one stands for all that follow
-- Returns: for each -1 the lease is lost, -2 exhausted, 0 completed, else when it is due or its lease ends.
-- A second run finds every lease lost. Bounded by what comes.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local members = {}
for at = 2, #ARGV, 4 do
  members[#members + 1] = ARGV[at]
end
if #members == 0 then return {} end
local found = redis.call('HMGET', KEYS[2], unpack(members))
local sub = string.sub

-- The wait after so many attempts; none where they are used up.
local function wait_after(waits, attempts)
  local allowed, list = string.match(waits, '^(%d*):(.*)$')
  if allowed ~= '' and attempts >= tonumber(allowed) then return nil end
  local count, wait = 0, nil
  for one in string.gmatch(list, '%d+') do
    count, wait = count + 1, one
    if count == attempts then break end
  end
  return tonumber(wait)
end

-- What this call has made of a member: 'gone', or its entry; scores beside them.
local made, score, ended, answers = {}, {}, {}, {}
local freed = 0
for i, member in ipairs(members) do
  local at = 4 * i - 2
  local entry = made[member] or found[i]
  local token, how, value = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local is_held = entry and #entry >= 21 and sub(entry, 1, 1) == '1'
  if not is_held or struct.unpack('>I8', entry, 6) ~= tonumber(token) then
    answers[i] = -1
  elseif how == 'complete' then
    made[member], freed = 'gone', freed + 1
    ended[#ended + 1] = member
    answers[i] = 0
  elseif how == 'extend' then
    made[member], score[member] = entry, now + value
    answers[i] = now + value
  else
    local attempts = struct.unpack('>I4', entry, 2)
    local wait
    if how == 'back' then
      attempts, wait = math.max(attempts - 1, 0), tonumber(value)
    else
      wait = wait_after(value, attempts)
    end
    freed = freed + 1
    if wait then
      made[member], score[member] = '0' .. struct.pack('>I4', attempts) .. sub(entry, 6), now + wait
      answers[i] = now + wait
    else
      made[member] = 'gone'
      ended[#ended + 1] = member
      redis.call('HSET', KEYS[3], member, '0\0\0\0\0' .. sub(entry, 6))
      redis.call('ZADD', KEYS[6], now, member)
      redis.call('ZADD', KEYS[7], now, sub(entry, 6, 13) .. member)
      answers[i] = -2
    end
  end
end
local scores, work, taken = {}, {}, {}
for i, member in ipairs(members) do
  local entry = made[member]
  if entry and entry ~= 'gone' and not taken[member] then
    local n = #scores
    taken[member] = true
    scores[n + 1], scores[n + 2] = string.format('%.0f', score[member]), member
    work[n + 1], work[n + 2] = member, entry
  end
end
if #ended > 0 then
  redis.call('HDEL', KEYS[2], unpack(ended))
  redis.call('ZREM', KEYS[1], unpack(ended))
  redis.call('ZREM', KEYS[4], unpack(ended))
end
if #scores > 0 then
  redis.call('ZADD', KEYS[1], unpack(scores))
  redis.call('HSET', KEYS[2], unpack(work))
end
if freed > 0 then
  redis.call('HINCRBY', KEYS[5], 'leased', -freed)
end
return answers
