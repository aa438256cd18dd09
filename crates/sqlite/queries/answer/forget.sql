-- Forgets a first answer. Guard: it is as old as it was seen. Zero rows: the guard is lost; another one is there, or none.
-- Index: the one on the key.
DELETE FROM answer WHERE key = :key AND at = :at;
