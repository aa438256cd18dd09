-- Numbers go on behind those that were put back. Guards nothing. One row for each table that has rows. Index: the primary keys.
SELECT setval(pg_get_serial_sequence(n.holder, n.name), n.last)
FROM (
    SELECT 'word' AS holder, 'word_ref' AS name, max(word_ref)::BIGINT AS last FROM word
    UNION ALL SELECT 'sku' AS holder, 'sku_ref' AS name, max(sku_ref)::BIGINT AS last FROM sku
    UNION ALL SELECT 'purchase' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM purchase
    UNION ALL SELECT 'stock_entry' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM stock_entry
    UNION ALL SELECT 'transition' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM transition
    UNION ALL SELECT 'quarantine' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM quarantine
    UNION ALL SELECT 'open_case' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM open_case
    UNION ALL SELECT 'notice' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM notice
    UNION ALL SELECT 'group_order' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM group_order
    UNION ALL SELECT 'group_transition' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM group_transition
    UNION ALL SELECT 'credit_account' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM credit_account
    UNION ALL SELECT 'job' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM job
    UNION ALL SELECT 'due' AS holder, 'seq' AS name, max(seq)::BIGINT AS last FROM due
) AS n WHERE n.last IS NOT NULL;
