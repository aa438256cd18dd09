-- Lists callbacks after a time, provider and event, oldest first. Guards nothing. Zero rows: there are none that old (any
-- more). Index: callback_by_age.
SELECT received_at, provider, event
FROM callback INDEXED BY callback_by_age
WHERE (received_at, provider, event) > (:at, :provider, :event)
ORDER BY received_at, provider, event
LIMIT :limit;
