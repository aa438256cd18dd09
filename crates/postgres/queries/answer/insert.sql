-- Keeps first answers to requests. Guarded by the primary key. As many rows as answers, or a constraint refuses them.
-- Index: writes the primary key, and answer_by_age for those that are not lasting.
INSERT INTO answer (key, fingerprint, status, body, at, lasting)
SELECT * FROM unnest($1::TEXT[], $2::BYTEA[], $3::INTEGER[], $4::BYTEA[], $5::BIGINT[], $6::BOOLEAN[]);
