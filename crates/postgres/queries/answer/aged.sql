-- Lists first answers that may be forgotten after a time and key, oldest first. Guards nothing. Zero rows: there are none that
-- old (any more). Index: answer_by_age.
SELECT a.at, a.key
FROM answer AS a
WHERE NOT a.lasting AND (a.at, a.key) > ($1::BIGINT, $2::TEXT)
ORDER BY a.at, a.key
LIMIT $3;
