-- Loads first answers to requests. Guards nothing. Those that are not there are the first. Index: the primary key.
SELECT key, fingerprint, status, body, at, lasting FROM answer WHERE key = ANY ($1::TEXT[]);
