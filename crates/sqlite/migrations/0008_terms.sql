-- Since when a SKU's limit is in force: what buyers held before a lower one, they keep. And a kind of case more: a statement
-- that moves money of which our book knows nothing.
ALTER TABLE sku ADD COLUMN limit_since INTEGER NOT NULL DEFAULT 0;

CREATE TABLE kept_case AS SELECT seq, kind, subject, detail, at FROM open_case;

DROP TABLE open_case;

CREATE TABLE open_case (
    seq INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 7),
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (kind, subject)
) STRICT;

INSERT INTO open_case (seq, kind, subject, detail, at) SELECT seq, kind, subject, detail, at FROM kept_case;

DROP TABLE kept_case;
