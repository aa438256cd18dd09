-- Reads the journal of the gate. Guards nothing. Zero rows: no reservation waits for its deadline.
-- Index: due_by_arrival.
SELECT body FROM due INDEXED BY due_by_arrival WHERE lane = :lane;
