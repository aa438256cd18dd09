-- Claims due members of a lane, earliest first. Guard: the rows are locked; what somebody else holds locked is passed over.
-- Zero rows: nothing is due. Index: due_by_time, where members that are not due cost nothing; writes all three.
WITH clock AS MATERIALIZED (
    SELECT coalesce($2::BIGINT, floor(extract(EPOCH FROM clock_timestamp()) * 1000)::BIGINT) AS now
), found AS MATERIALIZED (
    SELECT d.lane, d.seq, d.due_at
    FROM due AS d
    WHERE d.lane = $1 AND d.due_at <= (SELECT c.now FROM clock AS c)
    ORDER BY d.due_at, d.seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)
UPDATE due AS d SET due_at = c.now + $4, leased = TRUE, attempts = d.attempts + 1, token = nextval('due_token')
FROM found AS f CROSS JOIN clock AS c
WHERE d.lane = f.lane AND d.seq = f.seq
RETURNING d.seq, d.member, f.due_at, d.created_at, d.attempts, d.token, d.due_at, d.body, c.now;
