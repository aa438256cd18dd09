-- Reads whether the line of this very session is encrypted, and by which version of TLS; one row. Guards nothing. Index: none.
SELECT ssl, COALESCE(version, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid();
