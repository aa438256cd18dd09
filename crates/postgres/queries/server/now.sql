-- Reads the time of the server, in milliseconds. One row. Index: none.
SELECT floor(extract(EPOCH FROM clock_timestamp()) * 1000)::BIGINT;
