-- The same transaction as a function, so that a message is one call: what the statements beside it do, in their order. A
-- message that was handled before, or whose order cannot be made, ends it: here every message is to become an order.
CREATE FUNCTION consume(
    of_group TEXT, of_message UUID, of_topic TEXT, of_reservation UUID, of_request UUID, hash BYTEA, of_activity BIGINT,
    of_sku BIGINT, of_user BIGINT, reserved_ms BIGINT, deadline_ms BIGINT, new_order UUID, new_event UUID, event TEXT
) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE
    found_status TEXT;
BEGIN
    INSERT INTO consumer_inbox (
        consumer_group, message_id, topic, event_type, reservation_id, request_id, payload_hash, result_code
    )
    VALUES (of_group, of_message, of_topic, 'ORDER_CREATE_REQUESTED', of_reservation, of_request, hash, 'PROCESSING')
    ON CONFLICT (consumer_group, message_id) DO NOTHING;
    IF NOT FOUND THEN RAISE EXCEPTION 'a copy'; END IF;
    INSERT INTO inventory_reservation (
        reservation_id, request_id, activity_id, sku_id, user_id, message_id, status, reserved_at, business_deadline
    )
    VALUES (
        of_reservation, of_request, of_activity, of_sku, of_user, of_message, 'RESERVED',
        to_timestamp(reserved_ms / 1000.0), to_timestamp(deadline_ms / 1000.0)
    )
    ON CONFLICT (reservation_id) DO NOTHING;
    SELECT status INTO found_status FROM inventory_reservation WHERE reservation_id = of_reservation FOR UPDATE;
    IF found_status <> 'RESERVED' THEN RAISE EXCEPTION 'settled before'; END IF;
    UPDATE sku_inventory
    SET available_stock = available_stock - 1, occupied_stock = occupied_stock + 1, version = version + 1,
        updated_at = clock_timestamp()
    WHERE activity_id = of_activity AND sku_id = of_sku AND available_stock > 0;
    IF NOT FOUND THEN RAISE EXCEPTION 'sold out'; END IF;
    INSERT INTO orders (order_id, activity_id, sku_id, user_id, request_id, reservation_id, status)
    VALUES (new_order, of_activity, of_sku, of_user, of_request, of_reservation, 'CREATED')
    ON CONFLICT (activity_id, sku_id, user_id) DO NOTHING;
    IF NOT FOUND THEN RAISE EXCEPTION 'limit reached'; END IF;
    UPDATE inventory_reservation
    SET status = 'ORDER_CREATED', order_id = new_order, version = version + 1, updated_at = clock_timestamp()
    WHERE reservation_id = of_reservation AND status = 'RESERVED';
    INSERT INTO inventory_ledger (
        activity_id, sku_id, reservation_id, order_id, entry_type, quantity, idempotency_key
    )
    VALUES (of_activity, of_sku, of_reservation, new_order, 'OCCUPY', 1, 'OCCUPY:' || of_reservation)
    ON CONFLICT (idempotency_key) DO NOTHING;
    INSERT INTO event_outbox (
        event_id, aggregate_type, aggregate_id, event_type, schema_version, message_key, payload
    )
    VALUES (new_event, 'ORDER', new_order, 'ORDER_CREATED', 1, new_order::TEXT, event::JSONB)
    ON CONFLICT (event_id) DO NOTHING;
    UPDATE consumer_inbox
    SET result_code = 'ORDER_CREATED', order_id = new_order, processed_at = clock_timestamp()
    WHERE consumer_group = of_group AND message_id = of_message;
END;
$$;
