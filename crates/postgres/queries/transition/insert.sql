-- Adds lines of history, in their order. Guards nothing: they ride with the guarded changes they tell of. Fewer rows: a purchase
-- is not there. Index: purchase_by_id; writes transition_by_purchase.
INSERT INTO transition (purchase, at, kind, from_state, to_state, cause, actor, reference)
SELECT p.seq, c.at, c.kind, c.from_state, c.to_state, c.cause, c.actor, c.reference
FROM unnest($1::UUID[], $2::BIGINT[], $3::INTEGER[], $4::INTEGER[], $5::INTEGER[], $6::INTEGER[], $7::INTEGER[], $8::TEXT[])
    WITH ORDINALITY AS c (id, at, kind, from_state, to_state, cause, actor, reference, ord)
JOIN purchase AS p ON p.id = c.id
ORDER BY c.ord;
