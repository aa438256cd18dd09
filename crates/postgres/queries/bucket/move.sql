-- Writes new counters. Guard: the revision they were decided on; the row's own checks are the last line. Fewer rows: a
-- guard is lost; the caller reads what is there. Index: the primary key.
UPDATE bucket AS b SET
    initial = c.initial, available = c.available, open_reserved = c.open_reserved, committed = c.committed,
    adjustments = c.adjustments, revision = b.revision + 1
FROM unnest($1::INTEGER[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    AS c (sku_ref, revision, initial, available, open_reserved, committed, adjustments)
WHERE b.sku_ref = c.sku_ref AND b.revision = c.revision;
