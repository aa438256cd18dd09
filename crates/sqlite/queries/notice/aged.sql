-- Lists notices after the time of their last change and an id, oldest first. Guards nothing. Zero rows: there are none that
-- old (any more). Index: notice_by_age.
SELECT updated_at, id
FROM notice INDEXED BY notice_by_age
WHERE (updated_at, id) > (:at, :id)
ORDER BY updated_at, id
LIMIT :limit;
