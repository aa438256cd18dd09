-- Notes that something of a lane was given out. Guards nothing. Zero rows: it stands there already, or somebody else is noting
-- a claim at this moment; nobody waits for a note. Index: the primary key.
UPDATE lane AS l SET last_claim = $2
WHERE l.lane = (
    SELECT k.lane FROM lane AS k
    WHERE k.lane = $1 AND (k.last_claim IS NULL OR k.last_claim < $2)
    FOR NO KEY UPDATE SKIP LOCKED);
