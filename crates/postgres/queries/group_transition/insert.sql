-- Adds lines of groups' histories, in their order. Guards nothing: they ride with the guarded changes they tell of. Fewer rows:
-- a group is not there. Index: the one of ids; writes group_transition_by_group.
INSERT INTO group_transition (group_ref, at, from_state, to_state, cause, actor)
SELECT g.seq, c.at, c.from_state, c.to_state, c.cause, c.actor
FROM unnest($1::TEXT[], $2::BIGINT[], $3::INTEGER[], $4::INTEGER[], $5::INTEGER[], $6::INTEGER[]) WITH ORDINALITY
    AS c (id, at, from_state, to_state, cause, actor, ord)
JOIN group_order AS g ON g.id = c.id
ORDER BY c.ord;
