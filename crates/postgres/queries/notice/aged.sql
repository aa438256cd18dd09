-- Lists notices after the time of their last change and an id, oldest first. Guards nothing. Zero rows: there are none that
-- old (any more). Index: notice_by_age.
SELECT n.updated_at, n.id
FROM notice AS n
WHERE (n.updated_at, n.id) > ($1::BIGINT, $2::UUID)
ORDER BY n.updated_at, n.id
LIMIT $3;
