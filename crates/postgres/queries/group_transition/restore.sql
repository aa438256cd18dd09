-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO group_transition (
    seq, group_ref, at, from_state, to_state, cause, actor)
OVERRIDING SYSTEM VALUE
SELECT
    d.seq, d.group_ref, d.at, d.from_state, d.to_state, d.cause, d.actor
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    WITH ORDINALITY AS d (
        seq, group_ref, at, from_state, to_state, cause, actor, ord)
ORDER BY d.ord;
