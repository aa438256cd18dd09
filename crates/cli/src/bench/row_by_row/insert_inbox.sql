-- Claims a message. Zero rows: this group has handled it before. Guarded by the primary key.
INSERT INTO consumer_inbox (
    consumer_group, message_id, topic, event_type, reservation_id, request_id, payload_hash, result_code
)
VALUES ($1, $2, $3, 'ORDER_CREATE_REQUESTED', $4, $5, $6, 'PROCESSING')
ON CONFLICT (consumer_group, message_id) DO NOTHING
RETURNING message_id;
