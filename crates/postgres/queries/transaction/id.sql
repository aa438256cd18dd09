-- Names the transaction, so that its end can be asked for where the answer is lost, and holds a lock under that name until it
-- ends, on which whoever asks can wait. One row; its values are NULL where nothing was written. Index: none.
SELECT t.id::TEXT, pg_advisory_xact_lock(t.id::TEXT::BIGINT)
FROM (SELECT pg_current_xact_id_if_assigned() AS id OFFSET 0) AS t;
