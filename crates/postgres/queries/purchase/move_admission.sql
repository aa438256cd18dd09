-- Moves admission's view; a compensation that is not said stays. Guard: the revision they were decided on. Fewer rows: a guard
-- is lost; the caller reads what is there. Index: the primary key; where the place stays, no index is written.
UPDATE purchase AS p SET
    admission = c.admission, compensation = coalesce(c.compensation, p.compensation),
    place = CASE WHEN p.sku_ref IS NOT NULL THEN c.place END, updated_at = c.at, revision = p.revision + 1
FROM unnest($1::BIGINT[], $2::UUID[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::SMALLINT[], $7::UUID[])
    AS c (seq, id, revision, at, place, admission, compensation)
WHERE p.seq = c.seq AND p.id = c.id AND p.revision = c.revision;
