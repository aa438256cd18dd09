-- Counts group orders whose count is not that of their participants, or whose state contradicts a charge: a charge that has
-- begun before the close or none after it, and an open one in a settled group. The states are bound, as codes or as masks
-- with a bit for each. One row. Index: the primary key of participants.
SELECT count(*)
FROM group_order AS g
WHERE g.participants <> (SELECT count(*) FROM participant AS p WHERE p.group_ref = g.seq)
    OR EXISTS (
        SELECT FROM participant AS p
        WHERE p.group_ref = g.seq
            AND ((p.charge = $1::SMALLINT) <> (($2::INTEGER >> g.status) & 1 = 1)
                OR (g.status = $3::SMALLINT AND ($4::INTEGER >> p.charge) & 1 = 1))
    );
