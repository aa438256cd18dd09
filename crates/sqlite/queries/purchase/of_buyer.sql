-- Loads the flash purchases of a buyer that hold a place on one SKU, in the order of the index; the caller sorts them by
-- age. What the buyer gave back is not read: the cost must not grow with a history. Guards nothing. Zero rows: the buyer
-- holds none. Index: purchase_by_place (its first three columns).
SELECT p.seq, p.id, p.revision, p.user_id, p.request_id, p.route, p.sku_ref, p.quantity, p.place, p.admission,
    p.reservation, p.reason, p.reserved_at, p.business_deadline, p.updated_at, p.inbox_result, p.payload_hash,
    p.order_status, p.currency, p.unit_price, coalesce(p.total, p.unit_price * p.quantity) AS total, p.paid,
    p.refunded, p.created_at, p.expires_at, p.cancel_due_at, p.paid_at, p.cancelled_at, p.cancel_reason,
    p.compensation
FROM purchase AS p
WHERE p.user_id = :user_id AND p.sku_ref = :sku_ref AND p.place >= 0;
