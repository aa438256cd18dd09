-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO lane (
    lane, paused, last_claim)
SELECT
    d.lane, d.paused <> 0, d.last_claim
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::BIGINT[])
    WITH ORDINALITY AS d (
        lane, paused, last_claim, ord)
ORDER BY d.ord;
