-- Counts jobs whose entries are not what their marks say: one charge of -cost, a refund of +cost where refunded, a reclaim of
-- -cost where reclaimed, all of the account that pays, and after delivery no refund without its reclaim. One row.
-- Index: credit_entry_once_per_job.
SELECT count(*)
FROM job AS j
WHERE (SELECT count(*) FROM credit_entry AS e WHERE e.job = j.seq)
        <> 1 + j.is_refunded::INTEGER + j.is_reclaimed::INTEGER
    OR (SELECT count(*) FROM credit_entry AS e WHERE e.job = j.seq AND e.account = j.account AND (
            (e.kind = $1::SMALLINT AND e.amount = -j.cost)
            OR (e.kind = $2::SMALLINT AND j.is_refunded AND e.amount = j.cost)
            OR (e.kind = $3::SMALLINT AND j.is_reclaimed AND e.amount = -j.cost)
        )) <> 1 + j.is_refunded::INTEGER + j.is_reclaimed::INTEGER
    OR (j.status = $4::SMALLINT AND j.is_refunded <> j.is_reclaimed)
    OR (j.status <> $4::SMALLINT AND j.is_reclaimed);
