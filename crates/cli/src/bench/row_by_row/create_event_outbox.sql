-- One row per event to publish, written in the transaction that made it true (reference 003 §8.5).
CREATE TABLE event_outbox (
    event_id       UUID        PRIMARY KEY,
    aggregate_type VARCHAR(32) NOT NULL,
    aggregate_id   UUID        NOT NULL,
    event_type     VARCHAR(64) NOT NULL,
    schema_version INTEGER     NOT NULL,
    message_key    TEXT        NOT NULL,
    payload        JSONB       NOT NULL,
    status         VARCHAR(16) NOT NULL DEFAULT 'PENDING',
    attempt_count  INTEGER     NOT NULL DEFAULT 0,
    next_retry_at  TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    lease_owner    TEXT,
    lease_until    TIMESTAMPTZ,
    last_error     TEXT,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    sent_at        TIMESTAMPTZ,

    CHECK (status IN ('PENDING', 'SENDING', 'RETRY', 'SENT', 'MANUAL'))
);
