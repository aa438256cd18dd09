-- Keeps first answers to requests. Guarded by the primary key. As many rows as answers, or a constraint refuses them.
-- Index: writes the primary key.
INSERT INTO answer (key, fingerprint, status, body, at)
SELECT * FROM unnest($1::TEXT[], $2::BYTEA[], $3::INTEGER[], $4::BYTEA[], $5::BIGINT[]);
