-- Lists first answers that may be forgotten after a time and key, oldest first. Guards nothing. Zero rows: there are none that
-- old (any more). Index: answer_by_age.
SELECT at, key
FROM answer INDEXED BY answer_by_age
WHERE lasting = 0 AND (at, key) > (:at, :key)
ORDER BY at, key
LIMIT :limit;
