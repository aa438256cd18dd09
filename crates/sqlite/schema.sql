-- @generated from migrations/ by tests/schema.rs: run it with ONCEWARD_BLESS=1 to write it anew.

CREATE TABLE state (
    machine TEXT NOT NULL,
    code INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (machine, code)
) STRICT, WITHOUT ROWID;

CREATE TABLE word (
    word_ref INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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
    revision INTEGER NOT NULL, limit_since INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT sku_conserves_stock CHECK (initial = available + occupied + sold),
    UNIQUE (activity_id, sku_id)
) STRICT;

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
    compensation BLOB CHECK (length(compensation) = 16), may_expire_at INTEGER
    GENERATED ALWAYS AS (CASE WHEN order_status IN (0, 1) THEN cancel_due_at END) VIRTUAL,
    CONSTRAINT purchase_inbox_is_whole CHECK ((inbox_result IS NULL) = (payload_hash IS NULL)),
    CONSTRAINT purchase_order_is_whole CHECK ((order_status IS NULL) = (created_at IS NULL)),
    CONSTRAINT purchase_line_is_whole CHECK ((sku_ref IS NULL) = (quantity IS NULL)),
    CONSTRAINT purchase_place_is_whole CHECK ((sku_ref IS NULL) = (place IS NULL))
) STRICT;

CREATE UNIQUE INDEX purchase_by_id ON purchase (id);

CREATE UNIQUE INDEX purchase_by_place ON purchase (user_id, sku_ref, place, (CASE WHEN place >= 0 THEN 0 END));

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

CREATE TABLE compensation_task (
    purchase INTEGER PRIMARY KEY REFERENCES purchase (seq),
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 5),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    last_result TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

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

CREATE UNIQUE INDEX stock_entry_once ON stock_entry (purchase, sku_ref, cause) WHERE purchase IS NOT NULL;

CREATE UNIQUE INDEX stock_entry_by_adjustment ON stock_entry (adjustment) WHERE adjustment IS NOT NULL;

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

CREATE TABLE quarantine (
    seq INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    payload_hash BLOB NOT NULL CHECK (length(payload_hash) = 32),
    reason TEXT NOT NULL,
    payload BLOB NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (message_id, payload_hash)
) STRICT;

CREATE TABLE answer (
    key TEXT PRIMARY KEY,
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 32),
    status INTEGER NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL
, lasting INTEGER NOT NULL DEFAULT 1 CHECK (lasting IN (0, 1))) STRICT;

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

CREATE TABLE payment (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    purchase INTEGER NOT NULL REFERENCES purchase (seq),
    provider TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    currency INTEGER NOT NULL,
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 4),
    provider_transaction TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX payment_by_purchase ON payment (purchase);

CREATE UNIQUE INDEX payment_by_transaction ON payment (provider, provider_transaction)
WHERE provider_transaction IS NOT NULL;

CREATE TABLE refund (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    purchase INTEGER NOT NULL REFERENCES purchase (seq),
    payment BLOB NOT NULL REFERENCES payment (id),
    amount INTEGER NOT NULL CHECK (amount > 0),
    currency INTEGER NOT NULL,
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 3),
    cause INTEGER NOT NULL CHECK (cause BETWEEN 0 AND 2),
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX refund_by_purchase ON refund (purchase);

CREATE TABLE callback (
    provider TEXT NOT NULL,
    event TEXT NOT NULL,
    payload_hash BLOB NOT NULL CHECK (length(payload_hash) = 32),
    payload BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (provider, event)
) STRICT, WITHOUT ROWID;

CREATE TABLE lane (
    lane INTEGER PRIMARY KEY REFERENCES word (word_ref),
    paused INTEGER NOT NULL CHECK (paused BETWEEN 0 AND 1),
    last_claim INTEGER
) STRICT;

CREATE TABLE notice (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    recipient TEXT,
    detail TEXT NOT NULL,
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 1),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE group_order (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    leader TEXT NOT NULL,
    deadline INTEGER NOT NULL,
    charge_via TEXT NOT NULL,
    currency INTEGER NOT NULL,
    min_participants INTEGER NOT NULL CHECK (min_participants > 0),
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 4),
    participants INTEGER NOT NULL CHECK (participants >= 0),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    retries INTEGER NOT NULL CHECK (retries >= 0),
    next_attempt_at INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE participant (
    group_ref INTEGER NOT NULL REFERENCES group_order (seq),
    user_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),
    charge INTEGER NOT NULL CHECK (charge BETWEEN 0 AND 4),
    provider_transaction TEXT,
    joined_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (group_ref, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE group_transition (
    seq INTEGER PRIMARY KEY,
    group_ref INTEGER NOT NULL REFERENCES group_order (seq),
    at INTEGER NOT NULL,
    from_state INTEGER REFERENCES word (word_ref),
    to_state INTEGER NOT NULL REFERENCES word (word_ref),
    cause INTEGER NOT NULL REFERENCES word (word_ref),
    actor INTEGER NOT NULL REFERENCES word (word_ref)
) STRICT;

CREATE INDEX group_transition_by_group ON group_transition (group_ref);

CREATE INDEX purchase_by_expiry ON purchase (may_expire_at) WHERE may_expire_at IS NOT NULL;

CREATE TABLE credit_account (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    balance INTEGER NOT NULL,
    entries INTEGER NOT NULL CHECK (entries >= 0),
    overdraft INTEGER NOT NULL CHECK (overdraft >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account INTEGER NOT NULL REFERENCES credit_account (seq),
    cost INTEGER NOT NULL CHECK (cost > 0),
    max_attempts INTEGER NOT NULL CHECK (max_attempts > 0),
    payload TEXT,
    status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 4),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    not_before INTEGER,
    token INTEGER,
    worker TEXT,
    last_error TEXT,
    is_refunded INTEGER NOT NULL CHECK (is_refunded IN (0, 1)),
    is_reclaimed INTEGER NOT NULL CHECK (is_reclaimed IN (0, 1) AND is_reclaimed <= is_refunded),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE credit_entry (
    account INTEGER NOT NULL REFERENCES credit_account (seq),
    number INTEGER NOT NULL CHECK (number > 0),
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 4),
    amount INTEGER NOT NULL CHECK (amount <> 0),
    balance_after INTEGER NOT NULL,
    job INTEGER REFERENCES job (seq),
    reference TEXT,
    reason TEXT,
    actor INTEGER NOT NULL REFERENCES word (word_ref),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX credit_entry_once_per_job ON credit_entry (job, kind) WHERE job IS NOT NULL;

CREATE UNIQUE INDEX credit_entry_once_per_reference ON credit_entry (account, reference)
WHERE reference IS NOT NULL AND job IS NULL AND amount < 0;

CREATE TABLE open_case (
    seq INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 7),
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (kind, subject)
) STRICT;

CREATE INDEX answer_by_age ON answer (at) WHERE lasting = 0;

CREATE INDEX callback_by_age ON callback (received_at);

CREATE INDEX notice_by_age ON notice (updated_at);

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

CREATE TRIGGER payment_keeps_rows BEFORE DELETE ON payment
BEGIN SELECT RAISE(ABORT, 'payments are never deleted'); END;

CREATE TRIGGER refund_keeps_rows BEFORE DELETE ON refund
BEGIN SELECT RAISE(ABORT, 'refunds are never deleted'); END;

CREATE TRIGGER callback_keeps_values BEFORE UPDATE ON callback
BEGIN SELECT RAISE(ABORT, 'callback is append-only'); END;

CREATE TRIGGER group_order_keeps_rows BEFORE DELETE ON group_order
BEGIN SELECT RAISE(ABORT, 'group orders are never deleted'); END;

CREATE TRIGGER participant_keeps_charges BEFORE DELETE ON participant WHEN OLD.charge <> 0
BEGIN SELECT RAISE(ABORT, 'a participant whose charge has begun is never deleted'); END;

CREATE TRIGGER group_transition_keeps_rows BEFORE DELETE ON group_transition
BEGIN SELECT RAISE(ABORT, 'group_transition is append-only'); END;

CREATE TRIGGER group_transition_keeps_values BEFORE UPDATE ON group_transition
BEGIN SELECT RAISE(ABORT, 'group_transition is append-only'); END;

CREATE TRIGGER credit_entry_keeps_rows BEFORE DELETE ON credit_entry
BEGIN SELECT RAISE(ABORT, 'credit_entry is append-only'); END;

CREATE TRIGGER credit_entry_keeps_values BEFORE UPDATE ON credit_entry
BEGIN SELECT RAISE(ABORT, 'credit_entry is append-only'); END;

CREATE TRIGGER credit_entry_goes_on BEFORE INSERT ON credit_entry
BEGIN
    SELECT RAISE(ABORT, 'credit_entry is append-only')
    WHERE EXISTS (SELECT 1 FROM credit_entry WHERE account = NEW.account AND number = NEW.number)
        OR EXISTS (SELECT 1 FROM credit_entry WHERE job = NEW.job AND kind = NEW.kind)
        OR (NEW.job IS NULL AND NEW.amount < 0 AND EXISTS (
            SELECT 1 FROM credit_entry
            WHERE account = NEW.account AND reference = NEW.reference AND job IS NULL AND amount < 0));
    SELECT RAISE(ABORT, 'credit_entry does not go on from the entry before it')
    WHERE NOT (NEW.number = 1 AND NEW.balance_after = NEW.amount)
        AND NOT EXISTS (
            SELECT 1 FROM credit_entry
            WHERE account = NEW.account AND number = NEW.number - 1
                AND balance_after + NEW.amount = NEW.balance_after AND created_at <= NEW.created_at);
END;

CREATE TRIGGER credit_account_keeps_rows BEFORE DELETE ON credit_account
BEGIN SELECT RAISE(ABORT, 'credit accounts are never deleted'); END;

CREATE TRIGGER credit_account_starts_empty BEFORE INSERT ON credit_account
BEGIN
    SELECT RAISE(ABORT, 'a credit account starts without entries, once')
    WHERE NEW.balance <> 0 OR NEW.entries <> 0
        OR EXISTS (SELECT 1 FROM credit_account WHERE id = NEW.id OR seq = NEW.seq);
END;

CREATE TRIGGER credit_account_keeps_name BEFORE UPDATE OF seq, id, created_at ON credit_account
BEGIN SELECT RAISE(ABORT, 'a credit account keeps its name'); END;

CREATE TRIGGER credit_account_is_its_entries BEFORE UPDATE OF balance, entries ON credit_account
BEGIN
    SELECT RAISE(ABORT, 'a balance is that of the last entry')
    WHERE NEW.balance <> coalesce((SELECT balance_after FROM credit_entry WHERE account = NEW.seq AND number = NEW.entries), 0)
        OR EXISTS (SELECT 1 FROM credit_entry WHERE account = NEW.seq AND number = NEW.entries + 1)
        OR (NEW.entries > 0 AND NOT EXISTS (SELECT 1 FROM credit_entry WHERE account = NEW.seq AND number = NEW.entries));
END;

CREATE TRIGGER job_keeps_rows BEFORE DELETE ON job
BEGIN SELECT RAISE(ABORT, 'jobs are never deleted'); END;

CREATE TRIGGER job_keeps_terms BEFORE UPDATE OF seq, id, account, cost, max_attempts, payload, created_at ON job
BEGIN SELECT RAISE(ABORT, 'a job keeps its terms'); END;

CREATE TRIGGER notice_keeps_rows BEFORE DELETE ON notice WHEN OLD.status = 0
BEGIN SELECT RAISE(ABORT, 'a notice that was not sent is never deleted'); END;

CREATE TRIGGER open_case_keeps_rows BEFORE DELETE ON open_case
BEGIN SELECT RAISE(ABORT, 'open_case is append-only'); END;

CREATE TRIGGER open_case_keeps_values BEFORE UPDATE ON open_case
BEGIN SELECT RAISE(ABORT, 'open_case is append-only'); END;

CREATE VIEW inventory_reservation AS
SELECT lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-80' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)) AS reservation_id, s.activity_id, s.sku_id, p.user_id, p.request_id, p.quantity,
    coalesce(named.name, admitted.name) AS status, admitted.name AS admission_status, p.reason AS reason_code,
    p.reserved_at, p.business_deadline, p.updated_at, p.revision
FROM purchase AS p
JOIN sku AS s ON s.sku_ref = p.sku_ref
LEFT JOIN state AS named ON named.machine = 'reservation' AND named.code = p.reservation
LEFT JOIN state AS admitted ON admitted.machine = 'admission' AND admitted.code = p.admission;

CREATE VIEW orders AS
SELECT lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-81' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)) AS order_id,
    CASE WHEN p.sku_ref IS NOT NULL THEN lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-80' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21))
        END AS reservation_id,
    p.user_id, p.request_id, s.activity_id, s.sku_id, p.quantity, named.name AS status,
    coalesce(p.total, p.unit_price * p.quantity) AS total, p.currency, p.paid, p.refunded, p.created_at,
    p.expires_at, p.cancel_due_at, p.paid_at, p.cancelled_at, p.cancel_reason, p.updated_at, p.revision
FROM purchase AS p
LEFT JOIN sku AS s ON s.sku_ref = p.sku_ref
LEFT JOIN state AS named ON named.machine = 'order' AND named.code = p.order_status
WHERE p.order_status IS NOT NULL;

CREATE VIEW consumer_inbox AS
SELECT lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-82' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)) AS message_id,
    lower(hex(p.payload_hash)) AS payload_hash, named.name AS result, p.updated_at AS processed_at
FROM purchase AS p
LEFT JOIN state AS named ON named.machine = 'inbox_result' AND named.code = p.inbox_result
WHERE p.inbox_result IS NOT NULL;

CREATE VIEW inventory_ledger AS
SELECT s.activity_id, s.sku_id, lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-80' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)) AS purchase_id, NULL AS adjustment_id, 'order_created' AS cause,
    -p.quantity AS available, p.quantity AS occupied, 0 AS sold, NULL AS note, p.created_at AS at
FROM purchase AS p JOIN sku AS s ON s.sku_ref = p.sku_ref
WHERE p.order_status IS NOT NULL
UNION ALL
SELECT s.activity_id, s.sku_id,
    lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-80' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)), NULL, 'order_created', -l.quantity, l.quantity, 0, NULL, p.created_at
FROM order_line AS l JOIN purchase AS p ON p.seq = l.purchase JOIN sku AS s ON s.sku_ref = l.sku_ref
WHERE p.order_status IS NOT NULL
UNION ALL
SELECT s.activity_id, s.sku_id,
    lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-80' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)),
    lower(substr(hex(e.adjustment), 1, 8) || '-' || substr(hex(e.adjustment), 9, 4) || '-87' || substr(hex(e.adjustment), 15, 2) || '-' ||
        substr(hex(e.adjustment), 17, 4) || '-' || substr(hex(e.adjustment), 21)), w.text, e.available, e.occupied, e.sold,
    e.note, e.at
FROM stock_entry AS e
JOIN sku AS s ON s.sku_ref = e.sku_ref
JOIN word AS w ON w.word_ref = e.cause
LEFT JOIN purchase AS p ON p.seq = e.purchase;

CREATE VIEW event_outbox AS
SELECT d.member AS batch, event.key AS position, event.value AS event, d.created_at, d.due_at, d.attempts, d.leased
FROM due AS d
JOIN word AS w ON w.word_ref = d.lane AND w.text = 'outbox'
JOIN json_each(CASE WHEN json_valid(CAST(d.body AS TEXT)) THEN CAST(d.body AS TEXT) ELSE '[]' END) AS event;

CREATE VIEW compensation_tasks AS
SELECT lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-83' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)) AS compensation_id,
    lower(substr(hex(p.id), 1, 8) || '-' || substr(hex(p.id), 9, 4) || '-80' || substr(hex(p.id), 15, 2) || '-' ||
        substr(hex(p.id), 17, 4) || '-' || substr(hex(p.id), 21)) AS reservation_id, named.name AS status, t.attempts, t.last_result, t.created_at, t.updated_at,
    t.revision
FROM compensation_task AS t
JOIN purchase AS p ON p.seq = t.purchase
LEFT JOIN state AS named ON named.machine = 'compensation' AND named.code = t.status;

CREATE VIEW payment_record AS
SELECT lower(hex(m.id)) AS payment_id,
    lower(substr(hex(p.id), 1, 13) || '1' || substr(hex(p.id), 15)) AS order_id,
    m.provider, m.provider_transaction AS provider_transaction_id, m.amount, m.currency, named.name AS status,
    m.created_at, m.updated_at
FROM payment AS m
JOIN purchase AS p ON p.seq = m.purchase
LEFT JOIN state AS named ON named.machine = 'payment' AND named.code = m.status;

CREATE VIEW group_charge AS
SELECT g.id AS group_id, p.user_id, 'settle:' || replace(g.id, ':', '%3A') || ':' || p.user_id AS charge_id, p.amount,
    g.currency, named.name AS status, p.provider_transaction AS provider_transaction_id, p.joined_at, p.updated_at
FROM participant AS p
JOIN group_order AS g ON g.seq = p.group_ref
LEFT JOIN state AS named ON named.machine = 'group_charge' AND named.code = p.charge;

CREATE VIEW credit_ledger AS
SELECT a.id AS account_id, e.number, named.name AS type, e.amount, e.balance_after, j.id AS job_id, e.reference, e.reason,
    w.text AS actor, e.created_at
FROM credit_entry AS e
JOIN credit_account AS a ON a.seq = e.account
JOIN word AS w ON w.word_ref = e.actor
LEFT JOIN job AS j ON j.seq = e.job
LEFT JOIN state AS named ON named.machine = 'credit_entry' AND named.code = e.kind;
