-- Loads the flash purchases of buyers that hold a place on one SKU, and by which pair they were asked for. What a buyer gave
-- back is not read: the cost must not grow with a history. Guards nothing: places move under the lock of the SKU. Zero rows:
-- the buyers hold none. Index: purchase_by_place (its first three columns); OFFSET keeps it one look for each pair, whatever
-- the planner thinks of the table.
SELECT p.seq, p.id, p.revision, p.user_id, p.request_id, p.route, p.sku_ref, p.quantity, p.place, p.admission,
    p.reservation, p.reason, p.reserved_at, p.business_deadline, p.updated_at, p.inbox_result, p.payload_hash,
    p.order_status, p.currency, p.unit_price, p.total, p.paid, p.refunded, p.created_at, p.expires_at, p.cancel_due_at,
    p.paid_at, p.cancelled_at, p.cancel_reason, p.compensation, k.ord
FROM unnest($1::TEXT[], $2::INTEGER[]) WITH ORDINALITY AS k (user_id, sku_ref, ord)
CROSS JOIN LATERAL (
    SELECT * FROM purchase AS h WHERE h.user_id = k.user_id AND h.sku_ref = k.sku_ref AND h.place >= 0 OFFSET 0
) AS p;
