-- Leaves an event for the relay. Zero rows: it is there already. Guarded by the primary key.
INSERT INTO event_outbox (
    event_id, aggregate_type, aggregate_id, event_type, schema_version, message_key, payload
)
VALUES ($1, 'ORDER', $2, 'ORDER_CREATED', 1, $2::UUID::TEXT, $3::TEXT::JSONB)
ON CONFLICT (event_id) DO NOTHING;
