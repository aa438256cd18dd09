-- Notes what came of messages. Guard: the revision they were decided on. Fewer rows: a guard is lost; the caller reads
-- what is there. Index: the primary key; no other index is written.
UPDATE purchase AS p SET
    inbox_result = c.inbox_result, payload_hash = c.payload_hash, updated_at = c.at, revision = p.revision + 1
FROM unnest($1::BIGINT[], $2::UUID[], $3::BIGINT[], $4::BIGINT[], $5::SMALLINT[], $6::BYTEA[])
    AS c (seq, id, revision, at, inbox_result, payload_hash)
WHERE p.seq = c.seq AND p.id = c.id AND p.revision = c.revision;
