-- One row per consumer group and message: the guard against a message handled twice (reference 003 §8.5).
CREATE TABLE consumer_inbox (
    consumer_group TEXT        NOT NULL,
    message_id     UUID        NOT NULL,
    topic          TEXT        NOT NULL,
    event_type     TEXT        NOT NULL,
    reservation_id UUID,
    request_id     UUID,
    payload_hash   BYTEA       NOT NULL,
    result_code    TEXT        NOT NULL,
    order_id       UUID,
    processed_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    created_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),

    PRIMARY KEY (consumer_group, message_id),
    CHECK (octet_length(payload_hash) = 32)
);
