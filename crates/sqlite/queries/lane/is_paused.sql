-- Reads whether a lane is paused. Guards a claim, under the write lock. Zero rows: it never was. Index: the primary key.
SELECT paused FROM lane WHERE lane = :lane;
