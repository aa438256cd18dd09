-- One row per order; one order per user and SKU, one per reservation.
CREATE TABLE orders (
    order_id       UUID        PRIMARY KEY,
    activity_id    BIGINT      NOT NULL,
    sku_id         BIGINT      NOT NULL,
    user_id        BIGINT      NOT NULL,
    request_id     UUID        NOT NULL,
    reservation_id UUID        NOT NULL,
    status         VARCHAR(32) NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    updated_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT uq_orders_activity_sku_user UNIQUE (activity_id, sku_id, user_id),
    CONSTRAINT uq_orders_reservation_id UNIQUE (reservation_id)
);
