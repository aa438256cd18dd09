-- Projects decisions of the store onto one bucket, each at most once (FS-13). Which state follows which, and what moves
-- with it, is the admission machine's table, which comes with each call.
--
-- KEYS: 1 counter, 2 reservation, 3 user
-- ARGV: 1 how many events, n; then for each: id, moves, record
--       moves: for each state five characters: the next state, or '-' for none; then what moves per unit, 'a' for -1, 'b'
--       for 0 and 'c' for +1: available, open_reserved, committed, units that count under the buyer's limit
--       record: what to keep for an id that is not here, or '' where the caller does not know it either
-- Returns: -1 where the bucket was never opened; else for each event 1 applied, 0 nothing to do, 2 the id is not here, 3 what
--       is kept of it cannot be read, and stays as it is
-- Safe to run twice: a state that was left is not left again. Bounded by n.
local counter = redis.call('HMGET', KEYS[1], 'available', 'open_reserved', 'committed', 'limit')
if not counter[1] then return -1 end
local available, open, committed, limit = tonumber(counter[1]), tonumber(counter[2]), tonumber(counter[3]), tonumber(counter[4])
local byte, sub = string.byte, string.sub

-- The mark after so many units more or fewer of this id; false where none is left.
local function remarked(mark, id, units)
  if units > 0 and limit == 1 and units == 1 and (not mark or #mark >= 16) then
    return (mark or '') .. id
  end
  if mark and #mark >= 16 then
    if units < 0 then
      for at = 1, #mark, 16 do
        if sub(mark, at, at + 15) == id then
          mark = sub(mark, 1, at - 1) .. sub(mark, at + 16)
          return #mark > 0 and mark
        end
      end
      return mark
    end
    mark = #mark / 16
  end
  local left = (tonumber(mark or 0) or 0) + units
  return left > 0 and tostring(left)
end

-- The state of a record; none where the machine has no such state, or the units and the buyer are not all there.
local function state_of(record, moves)
  local state, length = byte(record), byte(record, 15)
  if length and #record >= 15 + length and state >= 48 and 5 * (state - 47) <= #moves then
    return state - 48
  end
end

local answers = {}
for i = 1, tonumber(ARGV[1]) do
  local id, moves, record = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  local kept = redis.call('HGET', KEYS[2], id)
  if not kept and record == '' then
    answers[i] = 2
  else
    record = kept or record
    local state = state_of(record, moves)
    local move = state and sub(moves, 5 * state + 1, 5 * state + 5)
    if not move then
      answers[i] = 3
    elseif byte(move) == 45 then
      answers[i] = 0
    else
      local units = struct.unpack('>I4', record, 10)
      local user = sub(record, 16, 15 + byte(record, 15))
      available = available + (byte(move, 2) - 98) * units
      open = open + (byte(move, 3) - 98) * units
      committed = committed + (byte(move, 4) - 98) * units
      local places = (byte(move, 5) - 98) * units
      redis.call('HSET', KEYS[2], id, sub(move, 1, 1) .. sub(record, 2))
      redis.call('HSET', KEYS[1], 'available', available, 'open_reserved', open, 'committed', committed)
      if places ~= 0 then
        local mark = remarked(redis.call('HGET', KEYS[3], user), id, places)
        if mark then
          redis.call('HSET', KEYS[3], user, mark)
        else
          redis.call('HDEL', KEYS[3], user)
        end
      end
      answers[i] = 1
    end
  end
end
return answers
