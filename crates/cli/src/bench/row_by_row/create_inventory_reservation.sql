-- One row per reservation; its status is the reservation's state machine (reference 003 §8.5).
CREATE TABLE inventory_reservation (
    reservation_id    UUID        PRIMARY KEY,
    request_id        UUID        NOT NULL,
    activity_id       BIGINT      NOT NULL,
    sku_id            BIGINT      NOT NULL,
    user_id           BIGINT      NOT NULL,
    message_id        UUID        NOT NULL,
    order_id          UUID,
    status            VARCHAR(32) NOT NULL,
    reason_code       VARCHAR(64),
    version           BIGINT      NOT NULL DEFAULT 0,
    reserved_at       TIMESTAMPTZ NOT NULL,
    business_deadline TIMESTAMPTZ NOT NULL,
    created_at        TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    updated_at        TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),

    UNIQUE (message_id),
    UNIQUE (user_id, request_id),
    CHECK (status IN (
        'RESERVED', 'ORDER_CREATED', 'ORDER_REJECTED', 'COMPENSATING', 'COMPENSATED', 'CANCELLED', 'MANUAL_REVIEW'
    ))
);
