-- Lists the orders of one buyer, newest first, from a handle down. Guards nothing. Zero rows: the list ends.
-- Index: purchase_by_place (its first column), then a sort of this buyer's rows.
SELECT p.seq, p.id, p.revision, p.user_id, p.request_id, p.route, p.sku_ref, p.quantity, p.place, p.admission,
    p.reservation, p.reason, p.reserved_at, p.business_deadline, p.updated_at, p.inbox_result, p.payload_hash,
    p.order_status, p.currency, p.unit_price, coalesce(p.total, p.unit_price * p.quantity) AS total, p.paid,
    p.refunded, p.created_at, p.expires_at, p.cancel_due_at, p.paid_at, p.cancelled_at, p.cancel_reason,
    p.compensation
FROM purchase AS p INDEXED BY purchase_by_place
WHERE p.seq < :before AND p.order_status IS NOT NULL
    AND (:status IS NULL OR p.order_status = :status)
    AND (:activity_id IS NULL
        OR p.sku_ref IN (SELECT s.sku_ref FROM sku AS s WHERE s.activity_id = :activity_id)
        OR EXISTS (
            SELECT 1 FROM order_line AS l JOIN sku AS s ON s.sku_ref = l.sku_ref
            WHERE l.purchase = p.seq AND s.activity_id = :activity_id))
    AND p.user_id = :user_id
ORDER BY p.seq DESC
LIMIT :limit;
