-- One row per movement of stock; the idempotency key keeps a movement from being booked twice.
CREATE TABLE inventory_ledger (
    ledger_id       BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    activity_id     BIGINT      NOT NULL,
    sku_id          BIGINT      NOT NULL,
    reservation_id  UUID        NOT NULL,
    order_id        UUID,
    entry_type      VARCHAR(32) NOT NULL,
    quantity        BIGINT      NOT NULL,
    idempotency_key TEXT        NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),

    UNIQUE (idempotency_key)
);
