-- Group orders, who takes part, and what happened to them. A participant's row is the charge that settles it: it is here,
-- in a state that says so, before any provider hears of it.

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

-- Append-only.
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

CREATE TRIGGER group_order_keeps_rows BEFORE DELETE ON group_order
BEGIN SELECT RAISE(ABORT, 'group orders are never deleted'); END;
-- The state 0 is NONE: whose charge may have begun stays for good.
CREATE TRIGGER participant_keeps_charges BEFORE DELETE ON participant WHEN OLD.charge <> 0
BEGIN SELECT RAISE(ABORT, 'a participant whose charge has begun is never deleted'); END;
CREATE TRIGGER group_transition_keeps_rows BEFORE DELETE ON group_transition
BEGIN SELECT RAISE(ABORT, 'group_transition is append-only'); END;
CREATE TRIGGER group_transition_keeps_values BEFORE UPDATE ON group_transition
BEGIN SELECT RAISE(ABORT, 'group_transition is append-only'); END;

-- For people: who was charged what, under the key that providers know.
CREATE VIEW group_charge AS
SELECT g.id AS group_id, p.user_id, 'settle:' || replace(g.id, ':', '%3A') || ':' || p.user_id AS charge_id, p.amount,
    g.currency, named.name AS status, p.provider_transaction AS provider_transaction_id, p.joined_at, p.updated_at
FROM participant AS p
JOIN group_order AS g ON g.seq = p.group_ref
LEFT JOIN state AS named ON named.machine = 'group_charge' AND named.code = p.charge;
