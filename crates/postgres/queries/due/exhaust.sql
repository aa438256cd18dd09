-- Moves members into the exhausted set, with their counters cleared; they keep the token, which names the exhaustion. Guard:
-- the token still holds them. Fewer rows: a claim is lost; the caller reads what is there. Index: due_once; writes all three.
UPDATE due AS d SET lane = c.dead, due_at = $5, attempts = 0, leased = FALSE
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::INTEGER[]) AS c (lane, member, token, dead)
WHERE d.lane = c.lane AND d.member = c.member AND d.token = c.token AND d.leased;
