-- What is known of a lane of due work besides its members, and the notices that people are sent.

CREATE TABLE lane (
    lane INTEGER PRIMARY KEY REFERENCES word (word_ref),
    paused BOOLEAN NOT NULL,
    last_claim BIGINT
) WITH (fillfactor = 50);

-- A notice is here before anybody is told. `recipient` is a user; NULL stands for the administrators.
CREATE TABLE notice (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    status SMALLINT NOT NULL CHECK (status BETWEEN 0 AND 1),
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    recipient TEXT,
    detail TEXT NOT NULL
);

CREATE TRIGGER notice_keeps_rows BEFORE DELETE OR TRUNCATE ON notice
EXECUTE FUNCTION keep_rows('notices are never deleted');
