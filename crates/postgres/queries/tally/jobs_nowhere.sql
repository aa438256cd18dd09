-- Counts jobs that wait for a run, or for a person, and are not in the lane that says so. One row.
-- Index: due_once, once for each such job.
SELECT count(*)
FROM job AS j
WHERE (j.status = $1::SMALLINT AND NOT EXISTS (
        SELECT FROM due AS d JOIN word AS w ON w.word_ref = d.lane WHERE w.text = $2 AND d.member = j.id))
    OR (j.status = $3::SMALLINT AND NOT EXISTS (
        SELECT FROM due AS d JOIN word AS w ON w.word_ref = d.lane WHERE w.text IN ($2, $4) AND d.member = j.id));
