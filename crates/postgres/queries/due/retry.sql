-- Gives members back for later. Guard: the tokens still hold them. Fewer rows: a claim is lost; the caller reads what is
-- there. Index: due_once; writes all three.
UPDATE due AS d SET
    due_at = c.due_at, leased = FALSE, attempts = greatest(d.attempts - c.refund, 0), body = coalesce(c.body, d.body)
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[])
    AS c (lane, member, token, due_at, refund, body)
WHERE d.lane = c.lane AND d.member = c.member AND d.token = c.token AND d.leased;
