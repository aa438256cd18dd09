-- Writes new stock figures. Guard: the revision they were decided on; the row's own checks are the last line: nothing
-- below zero, nothing lost. Zero rows: the guard is lost; the caller reads what is there. Index: the primary key.
UPDATE sku SET
    initial = :initial, available = :available, occupied = :occupied, sold = :sold, adjustments = :adjustments,
    revision = revision + 1
WHERE sku_ref = :sku_ref AND revision = :revision;
