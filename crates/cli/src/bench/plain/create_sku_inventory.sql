-- One row per SKU of an activity: the stock, which the checks keep from going below zero.
CREATE TABLE sku_inventory (
    activity_id     INTEGER NOT NULL,
    sku_id          INTEGER NOT NULL,
    initial_stock   INTEGER NOT NULL,
    available_stock INTEGER NOT NULL,
    occupied_stock  INTEGER NOT NULL DEFAULT 0,
    sold_stock      INTEGER NOT NULL DEFAULT 0,
    version         INTEGER NOT NULL DEFAULT 0,
    updated_at      INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),

    PRIMARY KEY (activity_id, sku_id),
    CHECK (available_stock >= 0 AND occupied_stock >= 0 AND sold_stock >= 0),
    CHECK (initial_stock = available_stock + occupied_stock + sold_stock)
) STRICT;
