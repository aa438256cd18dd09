-- What finds due orders when nobody told of them: the orders' own due-times, as long as they may expire. The states are
-- those from which the table of the order's machine knows the move `Expire`; a test compares them.
ALTER TABLE purchase ADD COLUMN may_expire_at INTEGER
    GENERATED ALWAYS AS (CASE WHEN order_status IN (0, 1) THEN cancel_due_at END) VIRTUAL;

-- An entry is written when an order is born and removed when it is paid or ends, so the index is as large as what waits.
CREATE INDEX purchase_by_expiry ON purchase (may_expire_at) WHERE may_expire_at IS NOT NULL;
