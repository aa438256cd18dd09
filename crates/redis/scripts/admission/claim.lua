-- Claims due batches of one bucket for sending, or because their deadline has come (FS-05, FS-15): the score moves to the
-- lease's end, nothing is taken out.
--
-- KEYS: 1 counter, 2 reservation, 3 send_due or deadline, 4 send or overdue
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; 2 at most so many batches; 3 the lease in milliseconds
-- Returns: how long after its stamp a reservation is due, then for each batch: its name, token, claims so far, packed ids,
--       and the records of these ids (an empty text where one is gone)
-- A second run finds what is due then. Bounded by ARGV 2 times the size of a batch. An entry that is gone or cut short is one without ids.
--
-- An entry is: '1' while a claim holds it, else '0'; claims (4 bytes); token (8 bytes); ids.
local counter = redis.call('HMGET', KEYS[1], 'token', 'wait')
if not counter[1] then return {} end
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local now = ARGV[1] == '' and math.floor(token / 1000) or tonumber(ARGV[1])
token = math.max(token, tonumber(counter[1]))
local names = redis.call('ZRANGE', KEYS[3], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[2])
if #names == 0 then return {} end
local entries = redis.call('HMGET', KEYS[4], unpack(names))
local answer, scores, fields = { tonumber(counter[2]) }, {}, {}
local till = now + ARGV[3]
for i, name in ipairs(names) do
  local entry = entries[i]
  if not entry or #entry < 13 then entry = string.rep('\0', 13) end
  local claims, ids = struct.unpack('>I4', entry, 2) + 1, string.sub(entry, 14)
  token = token + 1
  local list = {}
  for at = 1, #ids, 16 do
    list[#list + 1] = string.sub(ids, at, at + 15)
  end
  local records = #list > 0 and redis.call('HMGET', KEYS[2], unpack(list)) or {}
  for at = 1, #list do
    records[at] = records[at] or ''
  end
  answer[i + 1] = { name, string.format('%.0f', token), claims, ids, records }
  scores[2 * i - 1], scores[2 * i] = till, name
  fields[2 * i - 1], fields[2 * i] = name, '1' .. struct.pack('>I4I8', claims, token) .. ids
end
redis.call('HSET', KEYS[1], 'token', string.format('%.0f', token))
redis.call('ZADD', KEYS[3], unpack(scores))
redis.call('HSET', KEYS[4], unpack(fields))
return answer
