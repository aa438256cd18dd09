-- Lists the history of a purchase, oldest first. Guards nothing. Zero rows: nothing happened since its birth.
-- Index: transition_by_purchase.
SELECT t.at, t.kind, t.from_state, t.to_state, t.cause, t.actor, t.reference
FROM transition AS t
WHERE t.purchase = :purchase
ORDER BY t.seq;
