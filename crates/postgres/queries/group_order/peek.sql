-- Reads the revision of a group order, to say what is there where a guard was lost. Zero rows: no such group.
-- Index: the one of ids.
SELECT revision FROM group_order WHERE id = $1;
