-- Lists orders that may expire, by the time at which they are to be cancelled, after a time and handle. Guards nothing.
-- Zero rows: nothing waits for its payment. Index: purchase_by_expiry; what is paid or ended costs nothing.
SELECT may_expire_at(p.order_status, p.cancel_due_at), p.seq, p.id
FROM purchase AS p
WHERE may_expire_at(p.order_status, p.cancel_due_at) IS NOT NULL
    AND (may_expire_at(p.order_status, p.cancel_due_at), p.seq) > ($1::BIGINT, $2::BIGINT)
ORDER BY may_expire_at(p.order_status, p.cancel_due_at), p.seq
LIMIT $3;
