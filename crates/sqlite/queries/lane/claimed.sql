-- Notes that something of a lane was given out. Guards nothing. Zero rows cannot be. Index: the primary key.
INSERT INTO lane (lane, paused, last_claim) VALUES (:lane, :resumed, :now)
ON CONFLICT (lane) DO UPDATE SET last_claim = excluded.last_claim;
