-- Group orders, who takes part, and what happened to them. A participant's row is the charge that settles it: it is here,
-- in a state that says so, before any provider hears of it.

CREATE TABLE group_order (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    deadline BIGINT NOT NULL,
    min_participants BIGINT NOT NULL CHECK (min_participants > 0),
    participants BIGINT NOT NULL CHECK (participants >= 0),
    attempts BIGINT NOT NULL CHECK (attempts >= 0),
    retries BIGINT NOT NULL CHECK (retries >= 0),
    next_attempt_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    currency SMALLINT NOT NULL,
    status SMALLINT NOT NULL CHECK (status BETWEEN 0 AND 4),
    id TEXT NOT NULL UNIQUE,
    leader TEXT NOT NULL,
    charge_via TEXT NOT NULL,
    last_error TEXT
);

CREATE TABLE participant (
    group_ref BIGINT NOT NULL REFERENCES group_order (seq),
    amount BIGINT NOT NULL CHECK (amount > 0),
    joined_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    charge SMALLINT NOT NULL CHECK (charge BETWEEN 0 AND 4),
    user_id TEXT NOT NULL,
    provider_transaction TEXT,
    PRIMARY KEY (group_ref, user_id)
);

-- Append-only.
CREATE TABLE group_transition (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    group_ref BIGINT NOT NULL REFERENCES group_order (seq),
    at BIGINT NOT NULL,
    from_state INTEGER REFERENCES word (word_ref),
    to_state INTEGER NOT NULL REFERENCES word (word_ref),
    cause INTEGER NOT NULL REFERENCES word (word_ref),
    actor INTEGER NOT NULL REFERENCES word (word_ref)
);

CREATE INDEX group_transition_by_group ON group_transition (group_ref, seq);

CREATE TRIGGER group_order_keeps_rows BEFORE DELETE OR TRUNCATE ON group_order
EXECUTE FUNCTION keep_rows('group orders are never deleted');
-- The state 0 is NONE: whose charge may have begun stays for good.
CREATE TRIGGER participant_keeps_charges BEFORE DELETE ON participant FOR EACH ROW WHEN (OLD.charge <> 0)
EXECUTE FUNCTION keep_rows('a participant whose charge has begun is never deleted');
CREATE TRIGGER participant_keeps_rows BEFORE TRUNCATE ON participant
EXECUTE FUNCTION keep_rows('participants are never cleared away');
CREATE TRIGGER group_transition_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON group_transition
EXECUTE FUNCTION keep_rows('group_transition is append-only');

-- For people: who was charged what, under the key that providers know.
CREATE VIEW group_charge AS
SELECT g.id AS group_id, p.user_id, 'settle:' || replace(g.id, ':', '%3A') || ':' || p.user_id AS charge_id, p.amount,
    g.currency, named.name AS status, p.provider_transaction AS provider_transaction_id, p.joined_at, p.updated_at
FROM participant AS p
JOIN group_order AS g ON g.seq = p.group_ref
LEFT JOIN state AS named ON named.machine = 'group_charge' AND named.code = p.charge;
