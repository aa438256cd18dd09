-- Moves orders, and with them, where it is said, the reservations. Guard: the revision they were decided on. Fewer rows: a
-- guard is lost; the caller reads what is there. Index: the primary key; writes all.
UPDATE purchase AS p SET
    reservation = coalesce(c.reservation, p.reservation), order_status = c.order_status, currency = c.currency,
    total = nullif(c.total::NUMERIC, p.unit_price::NUMERIC * p.quantity), paid = c.paid, refunded = c.refunded,
    created_at = c.created_at, expires_at = c.expires_at, cancel_due_at = c.cancel_due_at, paid_at = c.paid_at,
    cancelled_at = c.cancelled_at, cancel_reason = c.cancel_reason,
    place = CASE WHEN p.sku_ref IS NOT NULL THEN coalesce(c.place, p.place) END, updated_at = c.at,
    revision = p.revision + 1
FROM unnest(
    $1::BIGINT[], $2::UUID[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::SMALLINT[], $7::SMALLINT[], $8::SMALLINT[],
    $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BIGINT[], $14::BIGINT[], $15::BIGINT[],
    $16::BIGINT[], $17::TEXT[])
    AS c (seq, id, revision, at, place, reservation, order_status, currency, total, paid, refunded, created_at, expires_at,
    cancel_due_at, paid_at, cancelled_at, cancel_reason)
WHERE p.seq = c.seq AND p.id = c.id AND p.revision = c.revision;
