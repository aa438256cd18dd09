-- Leaves an event for the relay. Zero rows: it is there already. Guarded by the primary key.
INSERT INTO event_outbox (
    event_id, aggregate_type, aggregate_id, event_type, schema_version, message_key, payload
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (event_id) DO NOTHING;
