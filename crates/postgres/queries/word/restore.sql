-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO word (
    word_ref, text)
OVERRIDING SYSTEM VALUE
SELECT
    d.word_ref, d.text
FROM unnest(
    $1::BIGINT[], $2::TEXT[])
    WITH ORDINALITY AS d (
        word_ref, text, ord)
ORDER BY d.ord;
