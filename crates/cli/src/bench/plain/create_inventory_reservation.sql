-- One row per reservation; its status is the reservation's state machine.
CREATE TABLE inventory_reservation (
    reservation_id    BLOB    PRIMARY KEY NOT NULL,
    request_id        BLOB    NOT NULL,
    activity_id       INTEGER NOT NULL,
    sku_id            INTEGER NOT NULL,
    user_id           INTEGER NOT NULL,
    message_id        BLOB    NOT NULL,
    order_id          BLOB,
    status            TEXT    NOT NULL,
    reason_code       TEXT,
    version           INTEGER NOT NULL DEFAULT 0,
    reserved_at       INTEGER NOT NULL,
    business_deadline INTEGER NOT NULL,
    created_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    updated_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),

    UNIQUE (message_id),
    UNIQUE (user_id, request_id),
    CHECK (status IN (
        'RESERVED', 'ORDER_CREATED', 'ORDER_REJECTED', 'COMPENSATING', 'COMPENSATED', 'CANCELLED', 'MANUAL_REVIEW'
    ))
) STRICT;
