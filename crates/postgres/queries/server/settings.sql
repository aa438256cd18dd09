-- Reads what the server says of settings that durability and size depend on, as they were when the session began; rows are names
-- and values. Guards nothing. Index: none.
SELECT name, reset_val FROM pg_settings WHERE name = ANY ($1::TEXT[]);
