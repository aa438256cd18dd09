-- Forgets a callback. Guard: it is as old as it was seen. Zero rows: the guard is lost; another one is there, or none.
-- Index: the primary key.
DELETE FROM callback WHERE provider = :provider AND event = :event AND received_at = :at;
