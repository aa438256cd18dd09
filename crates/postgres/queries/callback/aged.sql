-- Lists callbacks after a time, provider and event, oldest first. Guards nothing. Zero rows: there are none that old (any
-- more). Index: callback_by_age.
SELECT c.received_at, c.provider, c.event
FROM callback AS c
WHERE (c.received_at, c.provider, c.event) > ($1::BIGINT, $2::TEXT, $3::TEXT)
ORDER BY c.received_at, c.provider, c.event
LIMIT $4;
