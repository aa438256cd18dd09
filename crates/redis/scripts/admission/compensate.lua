-- Gives units back that the store has decided to give back, each at most once (FS-12, reference 003 section 9.6).
--
-- KEYS: 1 counter, 2 reservation, 3 user, 4 comp
-- ARGV: 1 how many, n; 2 for each state the answer's code, as a character: its number plus 100; 3 the machine's move, as
--       in project.lua; then for each: id, the compensation, the compensation that follows from the id
-- Returns: -9 where the bucket was never opened; else for each: 1 applied, 2 applied before, -1 the reservation is not
--       here, -3 it has an order, -4 its state does not allow it, -5 another compensation is marked, -8 what is kept of it
--       cannot be read, and stays as it is
-- Safe to run twice: the second run answers 2. Bounded by n.
local counter = redis.call('HMGET', KEYS[1], 'available', 'open_reserved', 'committed')
if not counter[1] then return -9 end
local available, open, committed = tonumber(counter[1]), tonumber(counter[2]), tonumber(counter[3])
local byte, sub = string.byte, string.sub
-- The state of a record; none where the machine has no such state, or the units and the buyer are not all there.
local function state_of(record, moves)
  local state, length = byte(record), byte(record, 15)
  if length and #record >= 15 + length and state >= 48 and 5 * (state - 47) <= #moves then
    return state - 48
  end
end

local answers = {}
for i = 1, tonumber(ARGV[1]) do
  local id, compensation, usual = ARGV[3 * i + 1], ARGV[3 * i + 2], ARGV[3 * i + 3]
  local record = redis.call('HGET', KEYS[2], id)
  local state = record and state_of(record, ARGV[3])
  if not record then
    answers[i] = -1
  elseif not state then
    answers[i] = -8
  else
    local code = byte(ARGV[2], state + 1) - 100
    local mark = redis.call('HGET', KEYS[4], id) or (code == 2 and usual)
    if mark then
      answers[i] = mark == compensation and 2 or -5
    elseif code ~= 1 then
      answers[i] = code
    else
      local move = sub(ARGV[3], 5 * state + 1, 5 * state + 5)
      local units = struct.unpack('>I4', record, 10)
      local user = sub(record, 16, 15 + byte(record, 15))
      available = available + (byte(move, 2) - 98) * units
      open = open + (byte(move, 3) - 98) * units
      committed = committed + (byte(move, 4) - 98) * units
      local places = (byte(move, 5) - 98) * units
      redis.call('HSET', KEYS[2], id, sub(move, 1, 1) .. sub(record, 2))
      redis.call('HSET', KEYS[1], 'available', available, 'open_reserved', open, 'committed', committed)
      if compensation ~= usual then
        redis.call('HSET', KEYS[4], id, compensation)
      end
      local before = redis.call('HGET', KEYS[3], user)
      if before and places < 0 then
        local after
        if #before >= 16 then
          after = before
          for at = 1, #before, 16 do
            if sub(before, at, at + 15) == id then
              after = sub(before, 1, at - 1) .. sub(before, at + 16)
              break
            end
          end
        else
          local left = (tonumber(before) or 0) + places
          after = left > 0 and tostring(left) or ''
        end
        if after ~= '' then
          redis.call('HSET', KEYS[3], user, after)
        else
          redis.call('HDEL', KEYS[3], user)
        end
      end
      answers[i] = 1
    end
  end
end
return answers
