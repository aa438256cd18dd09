-- One row per movement of stock; the idempotency key keeps a movement from being booked twice.
CREATE TABLE inventory_ledger (
    ledger_id       INTEGER PRIMARY KEY,
    activity_id     INTEGER NOT NULL,
    sku_id          INTEGER NOT NULL,
    reservation_id  BLOB    NOT NULL,
    order_id        BLOB,
    entry_type      TEXT    NOT NULL,
    quantity        INTEGER NOT NULL,
    idempotency_key TEXT    NOT NULL,
    created_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),

    UNIQUE (idempotency_key)
) STRICT;
