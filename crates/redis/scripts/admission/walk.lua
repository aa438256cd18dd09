-- A part of one bucket's reservations that have no end yet, for a rebuild to look up in the store (FS-18).
--
-- KEYS: 1 reservation
-- ARGV: 1 cursor, 2 about how many to look at, 3 the state that is wanted, a digit
-- Returns: the next cursor, then ids. Reads only.
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local answer = { page[1] }
local fields = page[2]
for at = 1, #fields, 2 do
  if string.sub(fields[at + 1], 1, 1) == ARGV[3] then
    answer[#answer + 1] = fields[at]
  end
end
return answer
