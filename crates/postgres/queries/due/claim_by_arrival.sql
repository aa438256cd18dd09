-- Claims the head of a lane that gives out its members strictly in order of arrival, up to the first that is not due. Guard:
-- the rows are locked in that order, and whoever comes second waits and sees what the first has made of the head. Zero rows:
-- the lane is empty, or its head is not due. Index: due_by_arrival; writes all three.
WITH clock AS MATERIALIZED (
    SELECT coalesce($2::BIGINT, floor(extract(EPOCH FROM clock_timestamp()) * 1000)::BIGINT) AS now
), head AS MATERIALIZED (
    SELECT d.lane, d.seq, d.due_at FROM due AS d WHERE d.lane = $1 ORDER BY d.seq LIMIT $3 FOR UPDATE
), found AS MATERIALIZED (
    SELECT h.lane, h.seq, h.due_at, bool_and(h.due_at <= c.now) OVER (ORDER BY h.seq) AS ready, c.now
    FROM head AS h CROSS JOIN clock AS c
)
UPDATE due AS d SET due_at = f.now + $4, leased = TRUE, attempts = d.attempts + 1, token = nextval('due_token')
FROM found AS f
WHERE d.lane = f.lane AND d.seq = f.seq AND f.ready
RETURNING d.seq, d.member, f.due_at, d.created_at, d.attempts, d.token, d.due_at, d.body, f.now;
