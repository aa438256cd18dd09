-- Notes what came of a message. Guard: the revision it was decided on. Zero rows: the guard is lost; the caller reads
-- what is there. Index: the primary key; no other index is written.
UPDATE purchase SET
    inbox_result = :inbox_result, payload_hash = :payload_hash, updated_at = :at, revision = revision + 1
WHERE seq = :seq AND id = :id AND revision = :revision;
