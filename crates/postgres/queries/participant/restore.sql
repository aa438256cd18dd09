-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO participant (
    group_ref, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision)
SELECT
    d.group_ref, d.user_id, d.amount, d.charge, d.provider_transaction, d.joined_at, d.updated_at, d.revision
FROM unnest(
    $1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[])
    WITH ORDINALITY AS d (
        group_ref, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision, ord)
ORDER BY d.ord;
