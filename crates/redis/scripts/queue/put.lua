-- Puts work into a lane; what is in it already, or among its exhausted, is left as it is (LQ-01).
--
-- KEYS: 1 due, 2 work, 3 dead, 4 age, 5 lane
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; then for each: member, 'at' or 'after', milliseconds, body
-- Returns: for each 1 added, 0 there already, 2 exhausted. Safe to run twice. Bounded by what comes.
--
-- Work is: '1' while a claim holds it, else '0'; claims (4 bytes); last token (8 bytes); when it was put in (8 bytes); body.
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
local there = redis.call('HMGET', KEYS[2], unpack(members))
local dead = redis.call('HMGET', KEYS[3], unpack(members))
local head = '0' .. string.rep('\0', 12) .. struct.pack('>I8', now)
local answers, work, due, age, seen = {}, {}, {}, {}, {}
for i, member in ipairs(members) do
  if there[i] or seen[member] then
    answers[i] = 0
  elseif dead[i] then
    answers[i] = 2
  else
    local at = 4 * i - 2
    local score = tonumber(ARGV[at + 2])
    if ARGV[at + 1] == 'after' then
      score = now + score
    end
    seen[member] = true
    work[#work + 1], due[#due + 1] = member, string.format('%.0f', math.min(score, 9007199254740991))
    work[#work + 1], due[#due + 1] = head .. ARGV[at + 3], member
    age[#age + 1] = member
    answers[i] = 1
  end
end
if #age > 0 then
  local last = redis.call('HINCRBY', KEYS[5], 'puts', #age)
  local ages = {}
  for i, member in ipairs(age) do
    ages[2 * i - 1], ages[2 * i] = last - #age + i, member
  end
  redis.call('HSET', KEYS[2], unpack(work))
  redis.call('ZADD', KEYS[1], unpack(due))
  redis.call('ZADD', KEYS[4], unpack(ages))
end
return answers
