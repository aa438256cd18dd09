-- One row per event to publish, written in the transaction that made it true.
CREATE TABLE event_outbox (
    event_id       BLOB    PRIMARY KEY NOT NULL,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   BLOB    NOT NULL,
    event_type     TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    message_key    TEXT    NOT NULL,
    payload        TEXT    NOT NULL,
    status         TEXT    NOT NULL DEFAULT 'PENDING',
    attempt_count  INTEGER NOT NULL DEFAULT 0,
    next_retry_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    lease_owner    TEXT,
    lease_until    INTEGER,
    last_error     TEXT,
    created_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    sent_at        INTEGER,

    CHECK (status IN ('PENDING', 'SENDING', 'RETRY', 'SENT', 'MANUAL'))
) STRICT;
