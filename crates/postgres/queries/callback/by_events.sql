-- Reads kept callbacks. Guards nothing. Those that are not there are new. Index: the primary key.
SELECT c.provider, c.event, c.payload_hash, c.payload, c.received_at
FROM unnest($1::TEXT[], $2::TEXT[]) AS k (provider, event)
JOIN callback AS c ON c.provider = k.provider AND c.event = k.event;
