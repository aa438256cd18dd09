-- Ends claims of one bucket's batches, each only for its present token (FS-05).
--
-- KEYS: 1 send_due or deadline, 2 send or overdue
-- ARGV: 1 a clock's milliseconds, or '' for the server's own; then for each claim: name, token, how, when, packed ids
--       how: 'done' (the batch is gone), 'after' (the ids again after `when` milliseconds, the attempt counts),
--       'at' (the ids again at `when`, the attempt is taken back)
-- Returns: how many were still held. A second run finds none of them held. Bounded by the number of claims.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local held = 0
for at = 2, #ARGV, 5 do
  local name, how = ARGV[at], ARGV[at + 2]
  local entry = redis.call('HGET', KEYS[2], name)
  if entry and string.sub(entry, 1, 1) == '1' and struct.unpack('>I8', entry, 6) == tonumber(ARGV[at + 1]) then
    held = held + 1
    if how == 'done' then
      redis.call('ZREM', KEYS[1], name)
      redis.call('HDEL', KEYS[2], name)
    else
      local claims = struct.unpack('>I4', entry, 2)
      local due = tonumber(ARGV[at + 3])
      if how == 'after' then
        due = now + due
      else
        claims = math.max(claims - 1, 0)
      end
      redis.call('ZADD', KEYS[1], due, name)
      redis.call('HSET', KEYS[2], name, '0' .. struct.pack('>I4', claims) .. string.sub(entry, 6, 13) .. ARGV[at + 4])
    end
  end
end
return held
