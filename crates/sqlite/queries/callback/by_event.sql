-- Reads a kept callback. Guards nothing. Zero rows: the event is new. Index: the primary key.
SELECT payload_hash, payload, received_at FROM callback WHERE provider = :provider AND event = :event;
