-- Lists the history of a purchase, oldest first. Guards nothing. Zero rows: nothing happened since its birth.
-- Index: purchase_by_id, then transition_by_purchase, then the primary key of words.
SELECT t.at, k.text, f.text, s.text, c.text, a.text, t.reference
FROM purchase AS p
JOIN transition AS t ON t.purchase = p.seq
JOIN word AS k ON k.word_ref = t.kind
LEFT JOIN word AS f ON f.word_ref = t.from_state
JOIN word AS s ON s.word_ref = t.to_state
JOIN word AS c ON c.word_ref = t.cause
JOIN word AS a ON a.word_ref = t.actor
WHERE p.id = $1
ORDER BY t.seq;
