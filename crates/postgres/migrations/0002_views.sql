-- The tables people know, for them to query. The engine never reads these views.

-- Ids are UUIDs of version 8; the digit after the 8 says what they name: 0 a reservation, 1 an order, 2 a message, 3 a
-- compensation, 7 an adjustment.
CREATE FUNCTION id_as(id UUID, kind TEXT) RETURNS TEXT
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN overlay(id::TEXT PLACING '8' || kind FROM 15 FOR 2);

CREATE VIEW inventory_reservation AS
SELECT id_as(p.id, '0') AS reservation_id, s.activity_id, s.sku_id, p.user_id, p.request_id, p.quantity,
    coalesce(named.name, admitted.name) AS status, admitted.name AS admission_status, p.reason AS reason_code,
    p.reserved_at, p.business_deadline, p.updated_at, p.revision
FROM purchase AS p
JOIN sku AS s ON s.sku_ref = p.sku_ref
LEFT JOIN state AS named ON named.machine = 'reservation' AND named.code = p.reservation
LEFT JOIN state AS admitted ON admitted.machine = 'admission' AND admitted.code = p.admission;

CREATE VIEW orders AS
SELECT id_as(p.id, '1') AS order_id, CASE WHEN p.sku_ref IS NOT NULL THEN id_as(p.id, '0') END AS reservation_id,
    p.user_id, p.request_id, s.activity_id, s.sku_id, p.quantity, named.name AS status,
    coalesce(p.total, p.unit_price * p.quantity) AS total, p.currency, p.paid, p.refunded, p.created_at,
    p.expires_at, p.cancel_due_at, p.paid_at, p.cancelled_at, p.cancel_reason, p.updated_at, p.revision
FROM purchase AS p
LEFT JOIN sku AS s ON s.sku_ref = p.sku_ref
LEFT JOIN state AS named ON named.machine = 'order' AND named.code = p.order_status
WHERE p.order_status IS NOT NULL;

CREATE VIEW consumer_inbox AS
SELECT id_as(p.id, '2') AS message_id, encode(p.payload_hash, 'hex') AS payload_hash, named.name AS result,
    p.updated_at AS processed_at
FROM purchase AS p
LEFT JOIN state AS named ON named.machine = 'inbox_result' AND named.code = p.inbox_result
WHERE p.inbox_result IS NOT NULL;

-- The birth of an order is stated by its purchase; everything else has an entry of its own.
CREATE VIEW inventory_ledger AS
SELECT s.activity_id, s.sku_id, id_as(p.id, '0') AS purchase_id, NULL::TEXT AS adjustment_id, 'order_created' AS cause,
    -p.quantity AS available, p.quantity AS occupied, 0::BIGINT AS sold, NULL::TEXT AS note, p.created_at AS at
FROM purchase AS p JOIN sku AS s ON s.sku_ref = p.sku_ref
WHERE p.order_status IS NOT NULL
UNION ALL
SELECT s.activity_id, s.sku_id, id_as(p.id, '0'), NULL, 'order_created', -l.quantity, l.quantity, 0, NULL, p.created_at
FROM order_line AS l JOIN purchase AS p ON p.seq = l.purchase JOIN sku AS s ON s.sku_ref = l.sku_ref
WHERE p.order_status IS NOT NULL
UNION ALL
SELECT s.activity_id, s.sku_id, id_as(p.id, '0'), id_as(e.adjustment, '7'), w.text, e.available, e.occupied, e.sold,
    e.note, e.at
FROM stock_entry AS e
JOIN sku AS s ON s.sku_ref = e.sku_ref
JOIN word AS w ON w.word_ref = e.cause
LEFT JOIN purchase AS p ON p.seq = e.purchase;

-- The events of an outbox entry, or none where its body is something else.
CREATE FUNCTION events_of(body BYTEA) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN convert_from(body, 'UTF8')::JSONB;
EXCEPTION WHEN data_exception THEN
    RETURN '[]';
END;
$$;

-- One row per event: the body of an outbox entry is the JSON array of the events of one decision.
CREATE VIEW event_outbox AS
SELECT d.member AS batch, event.position - 1 AS position, event.value AS event, d.created_at, d.due_at, d.attempts,
    d.leased
FROM due AS d
JOIN word AS w ON w.word_ref = d.lane AND w.text = 'outbox'
CROSS JOIN LATERAL jsonb_array_elements(events_of(d.body)) WITH ORDINALITY AS event (value, position);

CREATE VIEW compensation_tasks AS
SELECT id_as(p.id, '3') AS compensation_id, id_as(p.id, '0') AS reservation_id, named.name AS status, t.attempts,
    t.last_result, t.created_at, t.updated_at, t.revision
FROM compensation_task AS t
JOIN purchase AS p ON p.seq = t.purchase
LEFT JOIN state AS named ON named.machine = 'compensation' AND named.code = t.status;
