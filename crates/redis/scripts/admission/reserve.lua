-- Lets a batch of buyers into one bucket, as if they had come one by one (FS-01, FS-02, FS-20).
--
-- KEYS: 1 counter, 2 reservation, 3 user, 4 send_due, 5 send, 6 deadline, 7 overdue
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; 2 the newest epoch that the caller knows; 3 how many
--       requests, n
--       then n ids (16 bytes), n users, n quantities, n tails (what a record holds behind its stamp)
--       then, for requests that older keys may have named, pairs: position of the request, other id
-- Returns: -1 where the bucket was never opened; -2 where it is an older one, or the server's history is not the one it
--       was opened under; else for each request 1 queued, -1 request conflict, -2 not open, -3 limit reached, -4 sold out, or a text:
--       'R' state id (a repeat), 'L' id (limit reached; the live flash reservation where the limit is one)
-- Safe to run twice: an id that is known is never admitted again. Bounded by n.
--
-- A record is: state (1 digit), stamp (8 bytes: microseconds of the batch, also its name), tail: units (4 bytes), 'f' or
-- 'd' (flash, direct), length of the user, the user, the request. A mark is the live ids of a buyer where each is one unit
-- under a limit of one, else the units as a number.
local n = tonumber(ARGV[3])
local counter = redis.call('HMGET', KEYS[1], 'history', 'available', 'open_reserved', 'stamp', 'limit', 'starts', 'ends', 'wait', 'epoch')
if not counter[1] then return -1 end
if tonumber(counter[9]) < tonumber(ARGV[2]) then return -2 end
if counter[1] ~= string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') then return -2 end
local known = redis.call('HMGET', KEYS[2], unpack(ARGV, 4, n + 3))
local marks = redis.call('HMGET', KEYS[3], unpack(ARGV, n + 4, 2 * n + 3))
local stamp
if ARGV[1] == '' then
  local time = redis.call('TIME')
  stamp = time[1] * 1000000 + time[2]
else
  stamp = ARGV[1] * 1000
end
local now = math.floor(stamp / 1000)
stamp = math.max(stamp, counter[4] + 1)
local is_open = tonumber(counter[6]) <= now and now < tonumber(counter[7])
local available, limit = tonumber(counter[2]), tonumber(counter[5])
local name = struct.pack('>I8', stamp)
local head = '1' .. name
local others = {}
for at = 4 * n + 4, #ARGV, 2 do
  local place = tonumber(ARGV[at])
  if not known[place] then
    known[place] = redis.call('HGET', KEYS[2], ARGV[at + 1])
    others[place] = ARGV[at + 1]
  end
end
local answers, records, admitted, marked, mine, made = {}, {}, {}, {}, {}, {}
local units, count = 0, 0
local sub = string.sub
for i = 1, n do
  local id = ARGV[i + 3]
  local record = known[i] or made[id]
  if record then
    if sub(record, 10) == ARGV[3 * n + i + 3] then
      answers[i] = 'R' .. sub(record, 1, 1) .. (known[i] and others[i] or id)
    else
      answers[i] = -1
    end
  elseif not is_open then
    answers[i] = -2
  else
    local user, quantity = ARGV[n + i + 3], tonumber(ARGV[2 * n + i + 3])
    local mark = mine[user] or marks[i]
    local held = 0
    if mark then
      held = #mark >= 16 and #mark / 16 or tonumber(mark)
    end
    if held + quantity > limit then
      answers[i] = -3
      if limit == 1 and mark and #mark == 16 then
        local live = made[mark] or redis.call('HGET', KEYS[2], mark)
        if live and sub(live, 14, 14) == 'f' then
          answers[i] = 'L' .. mark
        end
      end
    elseif available < quantity then
      answers[i] = -4
    else
      available = available - quantity
      units = units + quantity
      count = count + 1
      mark = limit == 1 and id or tostring(held + quantity)
      record = head .. ARGV[3 * n + i + 3]
      mine[user], made[id] = mark, record
      admitted[count] = id
      records[2 * count - 1], records[2 * count] = id, record
      marked[2 * count - 1], marked[2 * count] = user, mark
      answers[i] = 1
    end
  end
end
if count > 0 then
  local entry = '0\0\0\0\0\0\0\0\0\0\0\0\0' .. table.concat(admitted)
  redis.call('HSET', KEYS[1], 'available', available, 'open_reserved', counter[3] + units, 'stamp', string.format('%.0f', stamp))
  redis.call('HSET', KEYS[2], unpack(records))
  redis.call('HSET', KEYS[3], unpack(marked))
  redis.call('ZADD', KEYS[4], now, name)
  redis.call('HSET', KEYS[5], name, entry)
  redis.call('ZADD', KEYS[6], now + counter[8], name)
  redis.call('HSET', KEYS[7], name, entry)
end
return answers
