-- One row per SKU of an activity: the stock, which the checks keep from going below zero.
CREATE TABLE sku_inventory (
    activity_id     BIGINT      NOT NULL,
    sku_id          BIGINT      NOT NULL,
    initial_stock   BIGINT      NOT NULL,
    available_stock BIGINT      NOT NULL,
    occupied_stock  BIGINT      NOT NULL DEFAULT 0,
    sold_stock      BIGINT      NOT NULL DEFAULT 0,
    version         BIGINT      NOT NULL DEFAULT 0,
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),

    PRIMARY KEY (activity_id, sku_id),
    CHECK (available_stock >= 0 AND occupied_stock >= 0 AND sold_stock >= 0),
    CHECK (initial_stock = available_stock + occupied_stock + sold_stock)
);
