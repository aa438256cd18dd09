-- Payment attempts, refunds, callbacks and cases. An attempt and a refund are here before any provider hears of them.

CREATE TABLE payment (
    id UUID PRIMARY KEY,
    purchase BIGINT NOT NULL REFERENCES purchase (seq),
    amount BIGINT NOT NULL CHECK (amount >= 0),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    currency SMALLINT NOT NULL,
    status SMALLINT NOT NULL CHECK (status BETWEEN 0 AND 4),
    provider TEXT NOT NULL,
    provider_transaction TEXT
);

CREATE INDEX payment_by_purchase ON payment (purchase);

-- One transaction of a provider belongs to one payment (OT-08).
CREATE UNIQUE INDEX payment_by_transaction ON payment (provider, provider_transaction)
WHERE provider_transaction IS NOT NULL;

CREATE TABLE refund (
    id UUID PRIMARY KEY,
    payment UUID NOT NULL REFERENCES payment (id),
    purchase BIGINT NOT NULL REFERENCES purchase (seq),
    amount BIGINT NOT NULL CHECK (amount > 0),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    currency SMALLINT NOT NULL,
    status SMALLINT NOT NULL CHECK (status BETWEEN 0 AND 3),
    cause SMALLINT NOT NULL CHECK (cause BETWEEN 0 AND 2),
    reason TEXT NOT NULL
);

CREATE INDEX refund_by_purchase ON refund (purchase);

-- Verified callbacks, kept before they are heard. Append-only.
CREATE TABLE callback (
    received_at BIGINT NOT NULL,
    provider TEXT NOT NULL,
    event TEXT NOT NULL,
    payload_hash BYTEA NOT NULL CHECK (octet_length(payload_hash) = 32),
    payload BYTEA NOT NULL,
    PRIMARY KEY (provider, event)
);

-- Cases for people; one per kind and subject. Append-only.
CREATE TABLE open_case (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    kind SMALLINT NOT NULL CHECK (kind BETWEEN 0 AND 7),
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    UNIQUE (kind, subject)
);

CREATE TRIGGER payment_keeps_rows BEFORE DELETE OR TRUNCATE ON payment
EXECUTE FUNCTION keep_rows('payments are never deleted');
CREATE TRIGGER refund_keeps_rows BEFORE DELETE OR TRUNCATE ON refund
EXECUTE FUNCTION keep_rows('refunds are never deleted');
CREATE TRIGGER callback_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON callback
EXECUTE FUNCTION keep_rows('callback is append-only');
CREATE TRIGGER open_case_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON open_case
EXECUTE FUNCTION keep_rows('open_case is append-only');

-- For people: what was paid and what went back, under the names they know.
CREATE VIEW payment_record AS
SELECT m.id::TEXT AS payment_id, id_as(p.id, '1') AS order_id, m.provider,
    m.provider_transaction AS provider_transaction_id, m.amount, m.currency, named.name AS status, m.created_at,
    m.updated_at
FROM payment AS m
JOIN purchase AS p ON p.seq = m.purchase
LEFT JOIN state AS named ON named.machine = 'payment' AND named.code = m.status;
