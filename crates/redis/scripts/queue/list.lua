-- A page of a lane's work, or of its exhausted work, in the order of one sorted set, with the scores of another.
--
-- KEYS: 1 the order, 2 the scores, 3 the entries
-- ARGV: 1 at most so many; 2 the last member of the page before, or nothing of it
-- Returns: for each three parts: member, score, entry. Where the last member is gone the list begins anew. Reads only.
local start = 0
if ARGV[2] then
  start = (redis.call('ZRANK', KEYS[1], ARGV[2]) or -1) + 1
end
local members = redis.call('ZRANGE', KEYS[1], start, start + ARGV[1] - 1)
if #members == 0 then return {} end
local scores = redis.call('ZMSCORE', KEYS[2], unpack(members))
local entries = redis.call('HMGET', KEYS[3], unpack(members))
local answer = {}
for i, member in ipairs(members) do
  local n, entry = #answer, entries[i]
  if not entry or #entry < 21 then
    -- What cannot be read is shown whole, behind a head that can.
    entry = '0' .. string.rep('\0', 20) .. (entry or '')
  end
  answer[n + 1], answer[n + 2], answer[n + 3] = member, string.format('%.0f', tonumber(scores[i] or 0)), entry
end
return answer
