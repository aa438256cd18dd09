-- One row per order; one order per user and SKU, one per reservation.
CREATE TABLE orders (
    order_id       BLOB    PRIMARY KEY NOT NULL,
    activity_id    INTEGER NOT NULL,
    sku_id         INTEGER NOT NULL,
    user_id        INTEGER NOT NULL,
    request_id     BLOB    NOT NULL,
    reservation_id BLOB    NOT NULL,
    status         TEXT    NOT NULL,
    created_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    updated_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),

    CONSTRAINT uq_orders_activity_sku_user UNIQUE (activity_id, sku_id, user_id),
    CONSTRAINT uq_orders_reservation_id UNIQUE (reservation_id)
) STRICT;
