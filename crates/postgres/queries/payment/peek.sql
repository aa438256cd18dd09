-- Reads the revision of a payment attempt, to say what is there where a guard was lost. Zero rows: no such attempt.
-- Index: the primary key.
SELECT revision FROM payment WHERE id = $1;
