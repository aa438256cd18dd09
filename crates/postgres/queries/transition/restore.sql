-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO transition (
    seq, purchase, at, kind, from_state, to_state, cause, actor, reference)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.purchase, d.at, d.kind, d.from_state, d.to_state, d.cause, d.actor, d.reference
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
    $9::TEXT[])
    WITH ORDINALITY AS d (
        seq, purchase, at, kind, from_state, to_state, cause, actor, reference, ord)
ORDER BY d.ord;
