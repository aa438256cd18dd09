-- Moves reservations without an order; what is not said (reason, inbox) stays. Guard: the revision they were decided on. Fewer
-- rows: a guard is lost; the caller reads what is there. Index: the primary key; where the place stays, no index is written.
UPDATE purchase AS p SET
    reservation = c.reservation, reason = coalesce(c.reason, p.reason),
    inbox_result = coalesce(c.inbox_result, p.inbox_result), payload_hash = coalesce(c.payload_hash, p.payload_hash),
    place = CASE WHEN p.sku_ref IS NOT NULL THEN c.place END, updated_at = c.at, revision = p.revision + 1
FROM unnest($1::BIGINT[], $2::UUID[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::SMALLINT[], $7::SMALLINT[],
    $8::SMALLINT[], $9::BYTEA[])
    AS c (seq, id, revision, at, place, reservation, reason, inbox_result, payload_hash)
WHERE p.seq = c.seq AND p.id = c.id AND p.revision = c.revision;
