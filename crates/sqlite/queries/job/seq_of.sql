-- Finds the number of a job and the revision that is there. Guards nothing. Zero rows: it was never opened.
-- Index: the one on id.
SELECT seq, revision FROM job WHERE id = :id;
