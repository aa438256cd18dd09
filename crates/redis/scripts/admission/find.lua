-- What one bucket knows of a reservation, and how far its message has travelled.
--
-- KEYS: 1 counter, 2 reservation, 3 send
-- ARGV: 1 id
-- Returns: nothing where it is not here; else its record, the `send` entry that holds it (an empty text where none does),
--       and how long after its stamp a reservation is due. Reads only.
local record = redis.call('HGET', KEYS[2], ARGV[1])
if not record then return {} end
local entry = redis.call('HGET', KEYS[3], string.sub(record, 2, 9))
if not entry or not string.find(entry, ARGV[1], 14, true) then
  entry = ''
else
  entry = string.sub(entry, 1, 13)
end
return { record, entry, tonumber(redis.call('HGET', KEYS[1], 'wait')) or 0 }
