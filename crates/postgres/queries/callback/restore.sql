-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO callback (
    provider, event, payload_hash, payload, received_at)
SELECT
    d.provider, d.event, d.payload_hash, d.payload, d.received_at
FROM unnest(
    $1::TEXT[], $2::TEXT[], $3::BYTEA[], $4::BYTEA[], $5::BIGINT[])
    WITH ORDINALITY AS d (
        provider, event, payload_hash, payload, received_at, ord)
ORDER BY d.ord;
