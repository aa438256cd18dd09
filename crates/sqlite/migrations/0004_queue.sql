-- What is known of a lane of due work besides its members, and the notices that people are sent.

CREATE TABLE lane (
    lane INTEGER PRIMARY KEY REFERENCES word (word_ref),
    paused INTEGER NOT NULL CHECK (paused BETWEEN 0 AND 1),
    last_claim INTEGER
) STRICT;

-- A notice is here before anybody is told. `recipient` is a user; NULL stands for the administrators.
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

CREATE TRIGGER notice_keeps_rows BEFORE DELETE ON notice
BEGIN SELECT RAISE(ABORT, 'notices are never deleted'); END;
