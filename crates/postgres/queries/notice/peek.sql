-- Reads the revision that is there when a guard is lost, for the operator. Zero rows: there is no such notice.
-- Index: the one on the id.
SELECT revision FROM notice WHERE id = $1;
