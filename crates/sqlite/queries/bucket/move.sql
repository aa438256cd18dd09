-- Writes new counters. Guard: the revision they were decided on; the row's own checks are the last line. Zero rows: the
-- guard is lost; the caller reads what is there. Index: the primary key.
UPDATE bucket SET
    initial = :initial, available = :available, open_reserved = :open_reserved, committed = :committed,
    adjustments = :adjustments, revision = revision + 1
WHERE sku_ref = :sku_ref AND revision = :revision;
