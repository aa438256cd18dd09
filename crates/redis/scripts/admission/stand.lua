-- How one bucket stands: what it counts, and whether it lets anybody in (FS-18).
--
-- KEYS: 1 counter
-- ARGV: none
-- Returns: nothing where it is not there; else 1 where it is open, 0 where it was never opened or the server's history is
--       not the one it was opened under; then initial, available, open_reserved, committed, adjustments, epoch, since when.
--       Reads only.
local counter = redis.call('HMGET', KEYS[1], 'history', 'initial', 'available', 'open_reserved', 'committed',
  'adjustments', 'epoch', 'since')
if not counter[1] then return {} end
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local answer = { counter[1] == history and 1 or 0 }
for i = 2, 8 do
  answer[i] = tonumber(counter[i])
end
return answer
