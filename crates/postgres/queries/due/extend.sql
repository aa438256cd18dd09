-- Lengthens leases. Guard: the tokens still hold the members. Fewer rows: a claim is lost; the caller reads what is there.
-- Index: due_once; writes all three.
UPDATE due AS d SET due_at = c.lease_until
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[]) AS c (lane, member, token, lease_until)
WHERE d.lane = c.lane AND d.member = c.member AND d.token = c.token AND d.leased;
