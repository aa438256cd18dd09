-- Moves exhausted members back into their lanes, with fresh tries. Guard: they are exhausted by these claims. Fewer rows: one
-- was replayed already, or exhausted again since; the guard is lost. Index: due_once; writes all three.
UPDATE due AS d SET lane = c.back, due_at = c.due_at, attempts = 0
FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::INTEGER[]) AS c (dead, member, token, due_at, back)
WHERE d.lane = c.dead AND d.member = c.member AND d.token = c.token;
