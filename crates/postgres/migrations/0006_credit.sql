-- Credits: accounts, the jobs they pay for, and the entries that are both their history and their proof.
-- An entry can neither be changed nor taken away, and a balance cannot move without one, whoever writes the SQL.

CREATE TABLE credit_account (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    balance BIGINT NOT NULL,
    entries BIGINT NOT NULL CHECK (entries >= 0),
    overdraft BIGINT NOT NULL CHECK (overdraft >= 0),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    id TEXT NOT NULL UNIQUE
) WITH (fillfactor = 80);

CREATE TABLE job (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account BIGINT NOT NULL REFERENCES credit_account (seq),
    cost BIGINT NOT NULL CHECK (cost > 0),
    max_attempts BIGINT NOT NULL CHECK (max_attempts > 0),
    attempts BIGINT NOT NULL CHECK (attempts >= 0),
    not_before BIGINT,
    token BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    status SMALLINT NOT NULL CHECK (status BETWEEN 0 AND 4),
    is_refunded BOOLEAN NOT NULL,
    is_reclaimed BOOLEAN NOT NULL CHECK (is_reclaimed <= is_refunded),
    id TEXT NOT NULL UNIQUE,
    payload TEXT,
    worker TEXT,
    last_error TEXT
);

CREATE TABLE credit_entry (
    account BIGINT NOT NULL REFERENCES credit_account (seq),
    number BIGINT NOT NULL CHECK (number > 0),
    amount BIGINT NOT NULL CHECK (amount <> 0),
    balance_after BIGINT NOT NULL,
    job BIGINT REFERENCES job (seq),
    created_at BIGINT NOT NULL,
    actor INTEGER NOT NULL REFERENCES word (word_ref),
    kind SMALLINT NOT NULL CHECK (kind BETWEEN 0 AND 4),
    reference TEXT,
    reason TEXT,
    PRIMARY KEY (account, number)
);

-- The last line of CL-02: a job is charged, refunded and reclaimed once each.
CREATE UNIQUE INDEX credit_entry_once_per_job ON credit_entry (job, kind) WHERE job IS NOT NULL;

-- The last line of what is charged for no job: once per account and reference.
CREATE UNIQUE INDEX credit_entry_once_per_reference ON credit_entry (account, reference)
WHERE reference IS NOT NULL AND job IS NULL AND amount < 0;

CREATE TRIGGER credit_entry_keeps_rows BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_entry
EXECUTE FUNCTION keep_rows('credit_entry is append-only');

-- An entry goes on from the one before it: next number, a balance that is the sum, a time that is not earlier. The rows of
-- one statement see those before them.
CREATE FUNCTION credit_entry_goes_on() RETURNS TRIGGER
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (NEW.number = 1 AND NEW.balance_after = NEW.amount) AND NOT EXISTS (
        SELECT FROM credit_entry AS e
        WHERE e.account = NEW.account AND e.number = NEW.number - 1
            AND e.balance_after + NEW.amount = NEW.balance_after AND e.created_at <= NEW.created_at)
    THEN
        RAISE EXCEPTION 'credit_entry does not go on from the entry before it' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END;
$$;
CREATE TRIGGER credit_entry_goes_on BEFORE INSERT ON credit_entry FOR EACH ROW
EXECUTE FUNCTION credit_entry_goes_on();

CREATE TRIGGER credit_account_keeps_rows BEFORE DELETE OR TRUNCATE ON credit_account
EXECUTE FUNCTION keep_rows('credit accounts are never deleted');
CREATE TRIGGER credit_account_starts_empty BEFORE INSERT ON credit_account FOR EACH ROW
WHEN (NEW.balance <> 0 OR NEW.entries <> 0)
EXECUTE FUNCTION keep_rows('a credit account starts without entries');
CREATE TRIGGER credit_account_keeps_name BEFORE UPDATE OF seq, id, created_at ON credit_account
EXECUTE FUNCTION keep_rows('a credit account keeps its name');

-- C77: no balance without its entry.
CREATE FUNCTION credit_account_is_its_entries() RETURNS TRIGGER
LANGUAGE plpgsql AS $$
DECLARE
    last_entry RECORD;
BEGIN
    SELECT e.number, e.balance_after INTO last_entry
    FROM credit_entry AS e WHERE e.account = NEW.seq ORDER BY e.number DESC LIMIT 1;
    IF NEW.entries <> coalesce(last_entry.number, 0) OR NEW.balance <> coalesce(last_entry.balance_after, 0) THEN
        RAISE EXCEPTION 'a balance is that of the last entry' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END;
$$;
CREATE TRIGGER credit_account_is_its_entries BEFORE UPDATE OF balance, entries ON credit_account FOR EACH ROW
EXECUTE FUNCTION credit_account_is_its_entries();

CREATE TRIGGER job_keeps_rows BEFORE DELETE OR TRUNCATE ON job EXECUTE FUNCTION keep_rows('jobs are never deleted');
CREATE TRIGGER job_keeps_terms BEFORE UPDATE OF seq, id, account, cost, max_attempts, payload, created_at ON job
EXECUTE FUNCTION keep_rows('a job keeps its terms');

-- For people: the ledger with its names.
CREATE VIEW credit_ledger AS
SELECT a.id AS account_id, e.number, named.name AS type, e.amount, e.balance_after, j.id AS job_id, e.reference, e.reason,
    w.text AS actor, e.created_at
FROM credit_entry AS e
JOIN credit_account AS a ON a.seq = e.account
JOIN word AS w ON w.word_ref = e.actor
LEFT JOIN job AS j ON j.seq = e.job
LEFT JOIN state AS named ON named.machine = 'credit_entry' AND named.code = e.kind;
