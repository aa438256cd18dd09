-- Reads how a transaction ended. One row; its value is NULL where it is too long ago. Index: none.
SELECT pg_xact_status($1::TEXT::XID8);
