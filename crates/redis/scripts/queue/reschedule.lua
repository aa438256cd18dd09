-- Gives waiting work another due-time (LQ-06).
--
-- KEYS: 1 due, 2 work
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; 2 member; 3 'at' or 'after'; 4 milliseconds
-- Returns: 1 moved, 0 not there, 2 a claim holds it. Safe to run twice.
local entry = redis.call('HGET', KEYS[2], ARGV[2])
if not entry then return 0 end
if string.sub(entry, 1, 1) == '1' then return 2 end
local due = tonumber(ARGV[4])
if ARGV[3] == 'after' then
  local now = tonumber(ARGV[1])
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  due = now + due
end
redis.call('ZADD', KEYS[1], string.format('%.0f', math.min(due, 9007199254740991)), ARGV[2])
return 1
