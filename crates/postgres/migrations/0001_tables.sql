-- The tables of the cluster store. Money is in minor units, time in milliseconds since 1970, states are the small
-- numbers of the table `state`. One slim row is an order; columns stand by falling width, so that nothing is lost to
-- padding. The busy tables name others by number without a foreign key: each check would be a query of its own for each
-- row, and what they name is append-only.

-- Names of states, refreshed from the machines at every migration. Nothing but views and people read it.
CREATE TABLE state (
    machine TEXT NOT NULL,
    code SMALLINT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (machine, code)
);

-- Texts that repeat (lanes, labels, actors), written once.
CREATE TABLE word (
    word_ref INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

CREATE TABLE activity (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    starts_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    payment_window BIGINT NOT NULL,
    cancel_grace BIGINT NOT NULL,
    reservation_deadline BIGINT NOT NULL,
    confirm_after_cancel BIGINT NOT NULL,
    late_payment SMALLINT NOT NULL CHECK (late_payment BETWEEN 0 AND 2),
    cancelled_frees_limit BOOLEAN NOT NULL
);

-- The stock of record. `sku_ref` stands for the pair of ids everywhere else and never changes. Every order of a hot SKU
-- writes its row, so there is room on the page for the next version.
CREATE TABLE sku (
    price BIGINT NOT NULL CHECK (price >= 0),
    per_user_limit BIGINT NOT NULL CHECK (per_user_limit >= 0),
    opening BIGINT NOT NULL CHECK (opening >= 0),
    initial BIGINT NOT NULL CHECK (initial >= 0),
    available BIGINT NOT NULL CHECK (available >= 0),
    occupied BIGINT NOT NULL CHECK (occupied >= 0),
    sold BIGINT NOT NULL CHECK (sold >= 0),
    adjustments BIGINT NOT NULL CHECK (adjustments >= 0),
    revision BIGINT NOT NULL,
    limit_since BIGINT NOT NULL,
    sku_ref INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    buckets INTEGER NOT NULL CHECK (buckets >= 0),
    currency SMALLINT NOT NULL,
    activity_id TEXT NOT NULL REFERENCES activity (id),
    sku_id TEXT NOT NULL,
    CONSTRAINT sku_conserves_stock CHECK (initial = available + occupied + sold),
    UNIQUE (activity_id, sku_id)
) WITH (fillfactor = 50);

-- Admission's counters. `available` may be below zero for as long as others overtook open reservations.
CREATE TABLE bucket (
    sku_ref INTEGER PRIMARY KEY REFERENCES sku (sku_ref),
    initial BIGINT NOT NULL CHECK (initial >= 0),
    available BIGINT NOT NULL,
    open_reserved BIGINT NOT NULL CHECK (open_reserved >= 0),
    committed BIGINT NOT NULL CHECK (committed >= 0),
    adjustments BIGINT NOT NULL CHECK (adjustments >= 0),
    revision BIGINT NOT NULL,
    CONSTRAINT bucket_conserves_units CHECK (initial = available + open_reserved + committed)
) WITH (fillfactor = 50);

-- Inbox entry, reservation, order and ledger fact in one. A flash purchase has its one line here; a direct one
-- has its lines in `order_line`, and no SKU here. `total` is NULL where it is unit price times quantity.
CREATE TABLE purchase (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL,
    revision BIGINT NOT NULL,
    quantity BIGINT CHECK (quantity > 0),
    place BIGINT,
    reserved_at BIGINT NOT NULL,
    business_deadline BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    unit_price BIGINT CHECK (unit_price >= 0),
    total BIGINT CHECK (total >= 0),
    paid BIGINT CHECK (paid >= 0),
    refunded BIGINT CHECK (refunded BETWEEN 0 AND paid),
    created_at BIGINT,
    expires_at BIGINT,
    cancel_due_at BIGINT,
    paid_at BIGINT,
    cancelled_at BIGINT,
    compensation UUID,
    sku_ref INTEGER,
    route SMALLINT NOT NULL CHECK (route BETWEEN 0 AND 1),
    admission SMALLINT NOT NULL CHECK (admission BETWEEN 0 AND 5),
    reservation SMALLINT CHECK (reservation BETWEEN 0 AND 6),
    reason SMALLINT CHECK (reason BETWEEN 0 AND 2),
    inbox_result SMALLINT CHECK (inbox_result BETWEEN 0 AND 2),
    order_status SMALLINT CHECK (order_status BETWEEN 0 AND 7),
    currency SMALLINT,
    user_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    payload_hash BYTEA CHECK (octet_length(payload_hash) = 32),
    cancel_reason TEXT,
    CONSTRAINT purchase_inbox_is_whole CHECK ((inbox_result IS NULL) = (payload_hash IS NULL)),
    CONSTRAINT purchase_order_is_whole CHECK ((order_status IS NULL) = (created_at IS NULL)),
    CONSTRAINT purchase_line_is_whole CHECK ((sku_ref IS NULL) = (quantity IS NULL)),
    CONSTRAINT purchase_place_is_whole CHECK ((sku_ref IS NULL) = (place IS NULL))
) WITH (fillfactor = 90, autovacuum_analyze_scale_factor = 0.02);

CREATE UNIQUE INDEX purchase_by_id ON purchase (id);

-- Finds a buyer's purchases, and is the last line of defence of the per-user limit: no place is held twice. A negative
-- place is none, so it may repeat: NULL in the last column makes entries differ.
CREATE UNIQUE INDEX purchase_by_place ON purchase (user_id, sku_ref, place, (CASE WHEN place >= 0 THEN 0 END));

-- What finds due orders when nobody told of them: the orders' own due-times, as long as they may expire. The states are
-- those from which the table of the order's machine knows the move `Expire`; a test compares them.
CREATE FUNCTION may_expire_at(order_status SMALLINT, cancel_due_at BIGINT) RETURNS BIGINT
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN order_status IN (0, 1) THEN cancel_due_at END;

-- An entry is written when an order is born and dies when it is paid or ends: live states only.
CREATE INDEX purchase_by_expiry ON purchase (may_expire_at(order_status, cancel_due_at), seq)
WHERE may_expire_at(order_status, cancel_due_at) IS NOT NULL;

-- The lines of direct orders.
CREATE TABLE order_line (
    purchase BIGINT NOT NULL REFERENCES purchase (seq),
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    place BIGINT NOT NULL,
    unit_price BIGINT CHECK (unit_price >= 0),
    line INTEGER NOT NULL,
    sku_ref INTEGER NOT NULL REFERENCES sku (sku_ref),
    user_id TEXT NOT NULL,
    PRIMARY KEY (purchase, line)
);

-- Only what is held: nothing lists a buyer's lines.
CREATE UNIQUE INDEX order_line_by_place ON order_line (user_id, sku_ref, place) WHERE place >= 0;

-- Gives rejected reservations back to admission. The purchase is the idempotency key.
CREATE TABLE compensation_task (
    purchase BIGINT PRIMARY KEY REFERENCES purchase (seq),
    attempts BIGINT NOT NULL CHECK (attempts >= 0),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    status SMALLINT NOT NULL CHECK (status BETWEEN 0 AND 5),
    last_result TEXT
);

-- Moves of stock that no other row states: releases and adjustments. Append-only.
CREATE TABLE stock_entry (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purchase BIGINT,
    available BIGINT NOT NULL,
    occupied BIGINT NOT NULL,
    sold BIGINT NOT NULL,
    at BIGINT NOT NULL,
    adjustment UUID,
    sku_ref INTEGER NOT NULL,
    cause INTEGER NOT NULL,
    note TEXT
);

-- Stock comes back once for each cause.
CREATE UNIQUE INDEX stock_entry_once ON stock_entry (purchase, sku_ref, cause) WHERE purchase IS NOT NULL;
CREATE UNIQUE INDEX stock_entry_by_adjustment ON stock_entry (adjustment) WHERE adjustment IS NOT NULL;

-- What happened to purchases after they were created. Append-only.
CREATE TABLE transition (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purchase BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind INTEGER NOT NULL,
    from_state INTEGER,
    to_state INTEGER NOT NULL,
    cause INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    reference TEXT
);

CREATE INDEX transition_by_purchase ON transition (purchase, seq);

-- Messages that were set aside for a person. Append-only.
CREATE TABLE quarantine (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    message_id TEXT NOT NULL,
    payload_hash BYTEA NOT NULL CHECK (octet_length(payload_hash) = 32),
    reason TEXT NOT NULL,
    payload BYTEA NOT NULL,
    UNIQUE (message_id, payload_hash)
);

-- First answers to requests with an idempotency key.
CREATE TABLE answer (
    at BIGINT NOT NULL,
    status INTEGER NOT NULL,
    key TEXT PRIMARY KEY,
    fingerprint BYTEA NOT NULL CHECK (octet_length(fingerprint) = 32),
    body BYTEA NOT NULL
);

-- Fencing tokens. A sequence never gives a number out twice, and nobody waits for it.
CREATE SEQUENCE due_token;

-- Due work. `seq` is the order of arrival inside a lane; `due_at` is the end of the lease while one runs. Rows live
-- briefly, so the dead ones are cleared away early.
CREATE TABLE due (
    seq BIGINT GENERATED ALWAYS AS IDENTITY,
    due_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    token BIGINT NOT NULL,
    attempts BIGINT NOT NULL CHECK (attempts >= 0),
    lane INTEGER NOT NULL,
    leased BOOLEAN NOT NULL,
    member TEXT NOT NULL,
    body BYTEA NOT NULL,
    CONSTRAINT due_by_arrival PRIMARY KEY (lane, seq),
    CONSTRAINT due_once UNIQUE (lane, member)
) WITH (fillfactor = 80, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX due_by_time ON due (lane, due_at, seq);

-- Says no to whoever would change or take away what is append-only; the trigger's argument is the reason.
CREATE FUNCTION keep_rows() RETURNS TRIGGER
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME;
END;
$$;

CREATE TRIGGER stock_entry_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON stock_entry
EXECUTE FUNCTION keep_rows('stock_entry is append-only');
CREATE TRIGGER transition_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON transition
EXECUTE FUNCTION keep_rows('transition is append-only');
CREATE TRIGGER quarantine_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON quarantine
EXECUTE FUNCTION keep_rows('quarantine is append-only');
CREATE TRIGGER word_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON word
EXECUTE FUNCTION keep_rows('word is append-only');
