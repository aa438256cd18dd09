-- Loads the first answer to a request. Guards nothing. Zero rows: it is the first. Index: the one on the key.
SELECT fingerprint, status, body, at, lasting FROM answer WHERE key = :key;
