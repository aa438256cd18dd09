-- Lists orders that may expire, by the time at which they are to be cancelled, after a time and handle. Guards nothing.
-- Zero rows: nothing waits for its payment. Index: purchase_by_expiry; what is paid or ended costs nothing.
SELECT may_expire_at, seq, id
FROM purchase INDEXED BY purchase_by_expiry
WHERE may_expire_at IS NOT NULL AND (may_expire_at, seq) > (:due_at, :seq)
ORDER BY may_expire_at, seq
LIMIT :limit;
