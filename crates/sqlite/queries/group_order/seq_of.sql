-- Finds the handle of a group order. Guards nothing. Zero rows: there is no such group. Index: the one of ids.
SELECT seq FROM group_order WHERE id = :id;
