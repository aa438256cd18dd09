-- Reads the journal of the gate. Guards nothing. Zero rows: no reservation waits for its deadline.
-- Index: due_by_arrival.
SELECT d.body FROM word AS w JOIN due AS d ON d.lane = w.word_ref WHERE w.text = $1;
