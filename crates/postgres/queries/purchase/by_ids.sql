-- Loads purchases. Guards nothing: the lock came before, or a snapshot does. Rows that are not there are missing.
-- Index: purchase_by_id.
SELECT p.seq, p.id, p.revision, p.user_id, p.request_id, p.route, p.sku_ref, p.quantity, p.place, p.admission,
    p.reservation, p.reason, p.reserved_at, p.business_deadline, p.updated_at, p.inbox_result, p.payload_hash,
    p.order_status, p.currency, p.unit_price, p.total, p.paid, p.refunded, p.created_at, p.expires_at, p.cancel_due_at,
    p.paid_at, p.cancelled_at, p.cancel_reason, p.compensation
FROM purchase AS p
WHERE p.id = ANY ($1::UUID[]);
