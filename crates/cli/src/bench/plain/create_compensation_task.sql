-- One row per rejected reservation whose admission has to be given back.
CREATE TABLE compensation_task (
    task_id           BLOB    PRIMARY KEY NOT NULL,
    reservation_id    BLOB    NOT NULL,
    compensation_type TEXT    NOT NULL,
    idempotency_key   TEXT    NOT NULL,
    status            TEXT    NOT NULL DEFAULT 'PENDING',
    attempt_count     INTEGER NOT NULL DEFAULT 0,
    next_retry_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    lease_owner       TEXT,
    lease_until       INTEGER,
    last_result       TEXT,
    last_error        TEXT,
    created_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    updated_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),

    UNIQUE (idempotency_key),
    CHECK (status IN ('PENDING', 'CLAIMED', 'RETRY', 'APPLIED', 'VERIFIED', 'MANUAL'))
) STRICT;
