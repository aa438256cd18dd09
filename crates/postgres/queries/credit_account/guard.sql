-- Asks for the revisions of the accounts that a set moves, before its entries are written: two deciders of one entry are a
-- lost guard, which is decided again, and not a broken constraint. Fewer rows: a guard is lost. Index: the one on id.
SELECT 1
FROM unnest($1::TEXT[], $2::BIGINT[]) AS c (id, revision)
JOIN credit_account AS a ON a.id = c.id AND a.revision = c.revision
ORDER BY a.seq
FOR NO KEY UPDATE OF a;
