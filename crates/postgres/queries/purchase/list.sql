-- Lists orders, newest first, from a handle down. Guards nothing. Zero rows: the list ends.
-- Index: the primary key, backwards; a rare state is found by reading past the others.
SELECT p.seq, p.id, p.revision, p.user_id, p.request_id, p.route, p.sku_ref, p.quantity, p.place, p.admission,
    p.reservation, p.reason, p.reserved_at, p.business_deadline, p.updated_at, p.inbox_result, p.payload_hash,
    p.order_status, p.currency, p.unit_price, p.total, p.paid, p.refunded, p.created_at, p.expires_at, p.cancel_due_at,
    p.paid_at, p.cancelled_at, p.cancel_reason, p.compensation
FROM purchase AS p
WHERE p.seq < $1 AND p.order_status IS NOT NULL
    AND ($2::SMALLINT IS NULL OR p.order_status = $2)
    AND ($3::TEXT IS NULL
        OR EXISTS (SELECT FROM sku AS s WHERE s.sku_ref = p.sku_ref AND s.activity_id = $3)
        OR EXISTS (
            SELECT FROM order_line AS l JOIN sku AS s ON s.sku_ref = l.sku_ref
            WHERE l.purchase = p.seq AND s.activity_id = $3))
ORDER BY p.seq DESC
LIMIT $4;
