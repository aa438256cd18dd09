-- Opens a bucket. Guarded by the primary key. Zero rows: it is open already, and nothing happens.
-- Index: the primary key.
INSERT INTO bucket (sku_ref, initial, available, open_reserved, committed, adjustments, revision)
VALUES (:sku_ref, :initial, :available, :open_reserved, :committed, :adjustments, :revision)
ON CONFLICT (sku_ref) DO NOTHING;
