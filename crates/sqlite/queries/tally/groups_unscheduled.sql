-- Counts group orders that wait for something which is not scheduled. The states that wait are bound as a mask with a bit
-- for each. One row. Index: the unique one of lane and member.
SELECT count(*)
FROM group_order AS g
WHERE ((:waiting >> g.status) & 1) = 1
    AND NOT EXISTS (SELECT 1 FROM due AS d WHERE d.lane = :lane AND d.member = g.id);
