-- Counts orders whose paid or refunded amount is not the sum of their attempts or refunds, or whose refunds pass it. The
-- states that count are bound. One row. Index: payment_by_purchase, refund_by_purchase.
SELECT count(*)
FROM purchase AS p
WHERE p.order_status IS NOT NULL
    AND (p.paid > 0 OR p.refunded > 0 OR EXISTS (SELECT FROM payment AS m WHERE m.purchase = p.seq))
    AND (
        p.paid <> (SELECT coalesce(sum(m.amount), 0) FROM payment AS m
            WHERE m.purchase = p.seq AND m.status = $1::SMALLINT)
        OR p.refunded <> (SELECT coalesce(sum(r.amount), 0) FROM refund AS r
            WHERE r.purchase = p.seq AND r.status = $2::SMALLINT)
        OR p.paid < (SELECT coalesce(sum(r.amount), 0) FROM refund AS r
            WHERE r.purchase = p.seq AND r.status <> $3::SMALLINT)
    );
