-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO quarantine (
    seq, message_id, payload_hash, reason, payload, at)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.message_id, d.payload_hash, d.reason, d.payload, d.at
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::BYTEA[], $4::TEXT[], $5::BYTEA[], $6::BIGINT[])
    WITH ORDINALITY AS d (
        seq, message_id, payload_hash, reason, payload, at, ord)
ORDER BY d.ord;
