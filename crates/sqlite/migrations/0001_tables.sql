-- The tables of the embedded store. Money is in minor units, time in milliseconds since 1970, states are the
-- small numbers of the table `state`. The columns of a row are written once where that is possible: fewer bytes
-- and fewer index entries per order are what makes the store fast.

-- Names of states, refreshed from the machines at every start. Nothing but views and people read it.
CREATE TABLE state (
    machine TEXT NOT NULL,
    code INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (machine, code)
) STRICT, WITHOUT ROWID;

-- Texts that repeat (lanes, labels, actors), written once.
CREATE TABLE word (
    word_ref INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

-- Counters that never go back. `token` is the last fencing token that was given out.
CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO counter (name, value) VALUES ('token', 0);

CREATE TABLE activity (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    payment_window INTEGER NOT NULL,
    cancel_grace INTEGER NOT NULL,
    reservation_deadline INTEGER NOT NULL,
    confirm_after_cancel INTEGER NOT NULL,
    late_payment INTEGER NOT NULL CHECK (late_payment BETWEEN 0 AND 2),
    cancelled_frees_limit INTEGER NOT NULL CHECK (cancelled_frees_limit BETWEEN 0 AND 1)
) STRICT, WITHOUT ROWID;

-- The stock of record. `sku_ref` stands for the pair of ids everywhere else and never changes.
CREATE TABLE sku (
    sku_ref INTEGER PRIMARY KEY,
    activity_id TEXT NOT NULL REFERENCES activity (id),
    sku_id TEXT NOT NULL,
    price INTEGER NOT NULL CHECK (price >= 0),
    currency INTEGER NOT NULL,
    per_user_limit INTEGER NOT NULL CHECK (per_user_limit >= 0),
    buckets INTEGER NOT NULL CHECK (buckets >= 0),
    opening INTEGER NOT NULL CHECK (opening >= 0),
    initial INTEGER NOT NULL CHECK (initial >= 0),
    available INTEGER NOT NULL CHECK (available >= 0),
    occupied INTEGER NOT NULL CHECK (occupied >= 0),
    sold INTEGER NOT NULL CHECK (sold >= 0),
    adjustments INTEGER NOT NULL CHECK (adjustments >= 0),
    revision INTEGER NOT NULL,
    CONSTRAINT sku_conserves_stock CHECK (initial = available + occupied + sold),
    UNIQUE (activity_id, sku_id)
) STRICT;

-- Admission's counters. `available` may be below zero for as long as others overtook open reservations.
CREATE TABLE bucket (
    sku_ref INTEGER PRIMARY KEY REFERENCES sku (sku_ref),
    initial INTEGER NOT NULL CHECK (initial >= 0),
    available INTEGER NOT NULL,
    open_reserved INTEGER NOT NULL CHECK (open_reserved >= 0),
    committed INTEGER NOT NULL CHECK (committed >= 0),
    adjustments INTEGER NOT NULL CHECK (adjustments >= 0),
    revision INTEGER NOT NULL,
    CONSTRAINT bucket_conserves_units CHECK (initial = available + open_reserved + committed)
) STRICT;

-- Inbox entry, reservation, order and ledger fact in one. A flash purchase has its one line here; a direct one
-- has its lines in `order_line`, and no SKU here. `total` is NULL where it is unit price times quantity.
CREATE TABLE purchase (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL CHECK (length(id) = 16),
    revision INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    route INTEGER NOT NULL CHECK (route BETWEEN 0 AND 1),
    sku_ref INTEGER REFERENCES sku (sku_ref),
    quantity INTEGER CHECK (quantity > 0),
    place INTEGER,
    admission INTEGER NOT NULL CHECK (admission BETWEEN 0 AND 5),
    reservation INTEGER CHECK (reservation BETWEEN 0 AND 6),
    reason INTEGER CHECK (reason BETWEEN 0 AND 2),
    reserved_at INTEGER NOT NULL,
    business_deadline INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    inbox_result INTEGER CHECK (inbox_result BETWEEN 0 AND 2),
    payload_hash BLOB CHECK (length(payload_hash) = 32),
    order_status INTEGER CHECK (order_status BETWEEN 0 AND 7),
    currency INTEGER,
    unit_price INTEGER CHECK (unit_price >= 0),
    total INTEGER CHECK (total >= 0),
    paid INTEGER CHECK (paid >= 0),
    refunded INTEGER CHECK (refunded BETWEEN 0 AND paid),
    created_at INTEGER,
    expires_at INTEGER,
    cancel_due_at INTEGER,
    paid_at INTEGER,
    cancelled_at INTEGER,
    cancel_reason TEXT,
    compensation BLOB CHECK (length(compensation) = 16),
    CONSTRAINT purchase_inbox_is_whole CHECK ((inbox_result IS NULL) = (payload_hash IS NULL)),
    CONSTRAINT purchase_order_is_whole CHECK ((order_status IS NULL) = (created_at IS NULL)),
    CONSTRAINT purchase_line_is_whole CHECK ((sku_ref IS NULL) = (quantity IS NULL)),
    CONSTRAINT purchase_place_is_whole CHECK ((sku_ref IS NULL) = (place IS NULL))
) STRICT;

CREATE UNIQUE INDEX purchase_by_id ON purchase (id);

-- Finds a buyer's purchases, and is the last line of defence of the per-user limit: no place is held twice. A negative
-- place is none, so it may repeat: NULL in the last column makes entries differ.
CREATE UNIQUE INDEX purchase_by_place ON purchase (user_id, sku_ref, place, (CASE WHEN place >= 0 THEN 0 END));

-- The lines of direct orders.
CREATE TABLE order_line (
    purchase INTEGER NOT NULL REFERENCES purchase (seq),
    line INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    sku_ref INTEGER NOT NULL REFERENCES sku (sku_ref),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    place INTEGER NOT NULL,
    unit_price INTEGER CHECK (unit_price >= 0),
    PRIMARY KEY (purchase, line)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX order_line_by_place ON order_line (user_id, sku_ref, place, (CASE WHEN place >= 0 THEN 0 END));

-- Gives rejected reservations back to admission. The purchase is the idempotency key.
CREATE TABLE compensation_task (
    purchase INTEGER PRIMARY KEY REFERENCES purchase (seq),
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 5),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    last_result TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

-- Moves of stock that no other row states: releases and adjustments. Append-only.
CREATE TABLE stock_entry (
    seq INTEGER PRIMARY KEY,
    sku_ref INTEGER NOT NULL REFERENCES sku (sku_ref),
    purchase INTEGER REFERENCES purchase (seq),
    adjustment BLOB CHECK (length(adjustment) = 16),
    cause INTEGER NOT NULL REFERENCES word (word_ref),
    available INTEGER NOT NULL,
    occupied INTEGER NOT NULL,
    sold INTEGER NOT NULL,
    note TEXT,
    at INTEGER NOT NULL
) STRICT;

-- Stock comes back once for each cause.
CREATE UNIQUE INDEX stock_entry_once ON stock_entry (purchase, sku_ref, cause) WHERE purchase IS NOT NULL;
CREATE UNIQUE INDEX stock_entry_by_adjustment ON stock_entry (adjustment) WHERE adjustment IS NOT NULL;

-- What happened to purchases after they were created. Append-only.
CREATE TABLE transition (
    seq INTEGER PRIMARY KEY,
    purchase INTEGER NOT NULL REFERENCES purchase (seq),
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL REFERENCES word (word_ref),
    from_state INTEGER REFERENCES word (word_ref),
    to_state INTEGER NOT NULL REFERENCES word (word_ref),
    cause INTEGER NOT NULL REFERENCES word (word_ref),
    actor INTEGER NOT NULL REFERENCES word (word_ref),
    reference TEXT
) STRICT;

CREATE INDEX transition_by_purchase ON transition (purchase);

-- Messages that were set aside for a person. Append-only.
CREATE TABLE quarantine (
    seq INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    payload_hash BLOB NOT NULL CHECK (length(payload_hash) = 32),
    reason TEXT NOT NULL,
    payload BLOB NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (message_id, payload_hash)
) STRICT;

-- First answers to requests with an idempotency key.
CREATE TABLE answer (
    key TEXT PRIMARY KEY,
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    status INTEGER NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- Due work. `seq` is the order of arrival inside a lane; `due_at` is the end of the lease while one runs.
CREATE TABLE due (
    seq INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL REFERENCES word (word_ref),
    member TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    token INTEGER NOT NULL,
    leased INTEGER NOT NULL CHECK (leased BETWEEN 0 AND 1),
    body BLOB NOT NULL,
    UNIQUE (lane, member)
) STRICT;

CREATE INDEX due_by_time ON due (lane, due_at);
CREATE INDEX due_by_arrival ON due (lane);

CREATE TRIGGER stock_entry_keeps_rows BEFORE DELETE ON stock_entry
BEGIN SELECT RAISE(ABORT, 'stock_entry is append-only'); END;
CREATE TRIGGER stock_entry_keeps_values BEFORE UPDATE ON stock_entry
BEGIN SELECT RAISE(ABORT, 'stock_entry is append-only'); END;
CREATE TRIGGER transition_keeps_rows BEFORE DELETE ON transition
BEGIN SELECT RAISE(ABORT, 'transition is append-only'); END;
CREATE TRIGGER transition_keeps_values BEFORE UPDATE ON transition
BEGIN SELECT RAISE(ABORT, 'transition is append-only'); END;
CREATE TRIGGER quarantine_keeps_rows BEFORE DELETE ON quarantine
BEGIN SELECT RAISE(ABORT, 'quarantine is append-only'); END;
CREATE TRIGGER quarantine_keeps_values BEFORE UPDATE ON quarantine
BEGIN SELECT RAISE(ABORT, 'quarantine is append-only'); END;
CREATE TRIGGER word_keeps_rows BEFORE DELETE ON word
BEGIN SELECT RAISE(ABORT, 'word is append-only'); END;
CREATE TRIGGER word_keeps_values BEFORE UPDATE ON word
BEGIN SELECT RAISE(ABORT, 'word is append-only'); END;
