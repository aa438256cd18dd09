-- Reads the revision of a job, to say what is there where a guard was lost. Zero rows: no such job. Index: the one on id.
SELECT revision FROM job WHERE id = $1;
