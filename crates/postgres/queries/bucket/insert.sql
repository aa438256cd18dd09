-- Opens buckets. Guarded by the primary key. Fewer rows: one is open already, and nothing happens to it.
-- Index: the primary key.
INSERT INTO bucket (sku_ref, initial, available, open_reserved, committed, adjustments, revision)
SELECT * FROM unnest($1::INTEGER[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
ON CONFLICT (sku_ref) DO NOTHING;
