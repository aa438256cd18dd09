-- Payment attempts, refunds, callbacks and cases. An attempt and a refund are here before any provider hears of them.

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

-- One transaction of a provider belongs to one payment (OT-08).
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

-- Verified callbacks, kept before they are heard. Append-only.
CREATE TABLE callback (
    provider TEXT NOT NULL,
    event TEXT NOT NULL,
    payload_hash BLOB NOT NULL CHECK (length(payload_hash) = 32),
    payload BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (provider, event)
) STRICT, WITHOUT ROWID;

-- Cases for people; one per kind and subject. Append-only.
CREATE TABLE open_case (
    seq INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 6),
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (kind, subject)
) STRICT;

CREATE TRIGGER payment_keeps_rows BEFORE DELETE ON payment
BEGIN SELECT RAISE(ABORT, 'payments are never deleted'); END;
CREATE TRIGGER refund_keeps_rows BEFORE DELETE ON refund
BEGIN SELECT RAISE(ABORT, 'refunds are never deleted'); END;
CREATE TRIGGER callback_keeps_rows BEFORE DELETE ON callback
BEGIN SELECT RAISE(ABORT, 'callback is append-only'); END;
CREATE TRIGGER callback_keeps_values BEFORE UPDATE ON callback
BEGIN SELECT RAISE(ABORT, 'callback is append-only'); END;
CREATE TRIGGER open_case_keeps_rows BEFORE DELETE ON open_case
BEGIN SELECT RAISE(ABORT, 'open_case is append-only'); END;
CREATE TRIGGER open_case_keeps_values BEFORE UPDATE ON open_case
BEGIN SELECT RAISE(ABORT, 'open_case is append-only'); END;

-- For people: what was paid and what went back, under the names they know.
CREATE VIEW payment_record AS
SELECT lower(hex(m.id)) AS payment_id,
    lower(substr(hex(p.id), 1, 13) || '1' || substr(hex(p.id), 15)) AS order_id,
    m.provider, m.provider_transaction AS provider_transaction_id, m.amount, m.currency, named.name AS status,
    m.created_at, m.updated_at
FROM payment AS m
JOIN purchase AS p ON p.seq = m.purchase
LEFT JOIN state AS named ON named.machine = 'payment' AND named.code = m.status;
