-- Reads what is known of lanes besides their members. Guards nothing. Zero rows: nothing was ever claimed or paused.
-- Index: none, it reads the table; there are few lanes.
SELECT lane, paused, last_claim FROM lane;
