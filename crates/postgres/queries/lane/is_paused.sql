-- Reads whether a lane is paused. Guards a claim, under due/lock_lane.sql. Zero rows: nothing was ever claimed or paused.
-- Index: the primary key.
SELECT paused FROM lane WHERE lane = $1;
