-- Lists the history of a group order, oldest first. Guards nothing. Zero rows: nothing happened since it was made.
-- Index: the one of ids, then group_transition_by_group, then the primary key of words.
SELECT t.at, f.text, s.text, c.text, a.text
FROM group_order AS g
JOIN group_transition AS t ON t.group_ref = g.seq
LEFT JOIN word AS f ON f.word_ref = t.from_state
JOIN word AS s ON s.word_ref = t.to_state
JOIN word AS c ON c.word_ref = t.cause
JOIN word AS a ON a.word_ref = t.actor
WHERE g.id = $1
ORDER BY t.seq;
