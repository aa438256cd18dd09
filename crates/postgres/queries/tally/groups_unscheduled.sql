-- Counts group orders that wait for something which is not scheduled. The states that wait are bound as a mask with a bit
-- for each. One row. Index: due_once.
SELECT count(*)
FROM group_order AS g
WHERE ($1::INTEGER >> g.status) & 1 = 1
    AND NOT EXISTS (
        SELECT FROM due AS d JOIN word AS w ON w.word_ref = d.lane
        WHERE w.text = $2 AND d.member = g.id);
