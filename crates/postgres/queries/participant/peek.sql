-- Reads the revision of a participant, to say what is there where a guard was lost. Zero rows: the user takes no part.
-- Index: the one of group ids, then the primary key.
SELECT p.revision
FROM group_order AS g JOIN participant AS p ON p.group_ref = g.seq
WHERE g.id = $1 AND p.user_id = $2;
