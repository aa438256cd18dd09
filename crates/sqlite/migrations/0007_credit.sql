-- Credits: accounts, the jobs they pay for, and the entries that are both their history and their proof.
-- An entry can neither be changed nor taken away, and a balance cannot move without one, whoever writes the SQL.

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

-- The last line of CL-02: a job is charged, refunded and reclaimed once each.
CREATE UNIQUE INDEX credit_entry_once_per_job ON credit_entry (job, kind) WHERE job IS NOT NULL;

-- The last line of what is charged for no job: once per account and reference.
CREATE UNIQUE INDEX credit_entry_once_per_reference ON credit_entry (account, reference)
WHERE reference IS NOT NULL AND job IS NULL AND amount < 0;

CREATE TRIGGER credit_entry_keeps_rows BEFORE DELETE ON credit_entry
BEGIN SELECT RAISE(ABORT, 'credit_entry is append-only'); END;
CREATE TRIGGER credit_entry_keeps_values BEFORE UPDATE ON credit_entry
BEGIN SELECT RAISE(ABORT, 'credit_entry is append-only'); END;

-- INSERT OR REPLACE takes rows away without asking the triggers above, so what it could replace is refused here. An entry
-- goes on from the one before it: next number, a balance that is the sum, a time that is not earlier.
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
-- C77: no balance without its entry.
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

-- For people: the ledger with its names.
CREATE VIEW credit_ledger AS
SELECT a.id AS account_id, e.number, named.name AS type, e.amount, e.balance_after, j.id AS job_id, e.reference, e.reason,
    w.text AS actor, e.created_at
FROM credit_entry AS e
JOIN credit_account AS a ON a.seq = e.account
JOIN word AS w ON w.word_ref = e.actor
LEFT JOIN job AS j ON j.seq = e.job
LEFT JOIN state AS named ON named.machine = 'credit_entry' AND named.code = e.kind;
