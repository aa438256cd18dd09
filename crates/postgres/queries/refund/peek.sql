-- Reads the revision of a refund, to say what is there where a guard was lost. Zero rows: no such refund.
-- Index: the primary key.
SELECT revision FROM refund WHERE id = $1;
