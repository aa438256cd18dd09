-- Drops one bucket of a sale that is past, where nobody waits at it any more (FS-14): what it kept, the store knows.
--
-- KEYS: 1 counter, 2 reservation, 3 user, 4 send_due, 5 send, 6 deadline, 7 overdue, 8 comp, 9 loans, 10 borrowed
-- ARGV: none
-- Returns: 1 where it is gone, or was not there; 0 where a reservation has no end yet, or a message was not sent: then nothing is dropped.
-- Safe to run twice. Unlinked memory is given back beside the server's work, so the call does not grow with what was kept.
if tonumber(redis.call('HGET', KEYS[1], 'open_reserved') or 0) ~= 0 then return 0 end
if redis.call('ZCARD', KEYS[4]) > 0 or redis.call('ZCARD', KEYS[6]) > 0 then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
