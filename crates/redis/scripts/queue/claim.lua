-- Claims due work of a lane, earliest first: the score moves to the lease's end, the attempt is counted, a token is handed
-- out (LQ-01, LQ-02). Leases that ran out are due like everything else (LQ-03); work whose tries they have used up is moved
-- into the exhausted set instead, to be announced (LQ-05), and so is what cannot be read.
--
-- KEYS: 1 due, 2 work, 3 dead, 4 age, 5 lane, 6 exhausted, 7 announce
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; 2 at most so much; 3 the lease in milliseconds; 4 the attempts
--       that are allowed, or '' where it is never given up
-- Returns: how much was exhausted, and the end of the leases; then for each claim three parts: member, when it was due, the work as it is now. Nothing
--       where the lane is paused. A second run finds what is due then. Bounded by ARGV 2.
local lane = redis.call('HMGET', KEYS[5], 'paused', 'token', 'leased')
if lane[1] then return { 0 } end
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local now = ARGV[1] == '' and math.floor(token / 1000) or tonumber(ARGV[1])
token = math.max(token, tonumber(lane[2] or 0))
local head = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1, 'WITHSCORES')
local members = {}
for at = 2, #head, 2 do
  if tonumber(head[at]) > now then break end
  members[at / 2] = head[at - 1]
end
if #members == 0 then return { 0 } end
local allowed = tonumber(ARGV[4]) or math.huge
local entries = redis.call('HMGET', KEYS[2], unpack(members))
local till, fresh = string.format('%.0f', now + ARGV[3]), 0
local answer, scores, work, spent = { 0, till }, {}, {}, {}
local unpack4, pack, sub = struct.unpack, struct.pack, string.sub
for i, member in ipairs(members) do
  local entry = entries[i]
  local attempts = entry and #entry >= 21 and unpack4('>I4', entry, 2) + 1
  if not attempts then
    -- What cannot be read is set aside whole, behind a head that can: it holds up nobody. It may have been held.
    entries[i] = (entry and sub(entry, 1, 1) == '1' and '1' or '0') .. string.rep('\0', 20) .. (entry or '')
    spent[#spent + 1] = i
  elseif attempts > allowed then
    spent[#spent + 1] = i
  else
    if sub(entry, 1, 1) == '0' then
      fresh = fresh + 1
    end
    token = token + 1
    entry = '1' .. pack('>I4I8', attempts, token) .. sub(entry, 14)
    local n = #scores
    scores[n + 1], scores[n + 2] = till, member
    work[n + 1], work[n + 2] = member, entry
    n = #answer
    answer[n + 1], answer[n + 2], answer[n + 3] = member, head[2 * i], entry
  end
end
for _, i in ipairs(spent) do
  local member, entry = members[i], entries[i]
  if sub(entry, 1, 1) == '1' then
    fresh = fresh - 1
  end
  redis.call('HDEL', KEYS[2], member)
  redis.call('ZREM', KEYS[1], member)
  redis.call('ZREM', KEYS[4], member)
  redis.call('HSET', KEYS[3], member, '0\0\0\0\0' .. sub(entry, 6))
  redis.call('ZADD', KEYS[6], now, member)
  redis.call('ZADD', KEYS[7], now, sub(entry, 6, 13) .. member)
end
answer[1] = #spent
if #scores > 0 then
  redis.call('ZADD', KEYS[1], unpack(scores))
  redis.call('HSET', KEYS[2], unpack(work))
  redis.call('HSET', KEYS[5], 'token', string.format('%.0f', token), 'leased', math.max(0, tonumber(lane[3] or 0) + fresh), 'last_claim', now)
elseif fresh ~= 0 then
  redis.call('HSET', KEYS[5], 'leased', math.max(0, tonumber(lane[3] or 0) + fresh))
end
return answer
