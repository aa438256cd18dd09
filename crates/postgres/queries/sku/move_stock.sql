-- Writes new stock figures. Guard: the revision they were decided on; the row's own checks are the last line: nothing
-- below zero, nothing lost. Fewer rows: a guard is lost; the caller reads what is there. Index: the primary key.
UPDATE sku AS s SET
    initial = c.initial, available = c.available, occupied = c.occupied, sold = c.sold, adjustments = c.adjustments,
    revision = s.revision + 1
FROM unnest($1::INTEGER[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    AS c (sku_ref, revision, initial, available, occupied, sold, adjustments)
WHERE s.sku_ref = c.sku_ref AND s.revision = c.revision;
