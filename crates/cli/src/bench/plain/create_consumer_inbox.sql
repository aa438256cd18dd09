-- One row per consumer group and message: the guard against a message handled twice.
CREATE TABLE consumer_inbox (
    consumer_group TEXT    NOT NULL,
    message_id     BLOB    NOT NULL,
    topic          TEXT    NOT NULL,
    event_type     TEXT    NOT NULL,
    reservation_id BLOB,
    request_id     BLOB,
    payload_hash   BLOB    NOT NULL,
    result_code    TEXT    NOT NULL,
    order_id       BLOB,
    processed_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    created_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),

    PRIMARY KEY (consumer_group, message_id),
    CHECK (length(payload_hash) = 32)
) STRICT;
