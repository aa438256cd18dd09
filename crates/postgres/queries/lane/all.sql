-- Reads what is known of lanes besides their members. Guards nothing. Zero rows: nothing was ever claimed or paused.
-- Index: none, it reads the table; there are few lanes.
SELECT w.text, l.paused, l.last_claim FROM lane AS l JOIN word AS w ON w.word_ref = l.lane;
