-- Counts a part of one bucket's reservations whose message waits to be sent, claimed or not (FS-16).
--
-- KEYS: 1 send
-- ARGV: 1 cursor, 2 about how many batches to look at
-- Returns: the next cursor, reservations, and the stamp of the oldest batch where there is one. Reads only. A batch that the server
--       shows twice while it moves its table is counted twice: this is a measure, not an account.
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local fields = page[2]
local count, oldest = 0, nil
for at = 1, #fields, 2 do
  local stamp = #fields[at] == 8 and struct.unpack('>I8', fields[at])
  count = count + math.max(0, math.floor((#fields[at + 1] - 13) / 16))
  if stamp and (not oldest or stamp < oldest) then
    oldest = stamp
  end
end
return { page[1], count, oldest and string.format('%.0f', oldest) }
