-- Counts jobs that wait for a run, or for a person, and are not in the lane that says so. One row.
-- Index: the one on lane and member of due, once for each such job.
SELECT count(*)
FROM job AS j
WHERE (j.status = :waiting AND NOT EXISTS (SELECT 1 FROM due AS d WHERE d.lane = :lane AND d.member = j.id))
    OR (j.status = :dead AND NOT EXISTS (
        SELECT 1 FROM due AS d WHERE d.member = j.id AND d.lane IN (:lane, :dead_lane)));
