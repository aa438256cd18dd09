-- Reads every participant of groups. Guards nothing. Zero rows: nobody takes part. Index: the one of group ids, then the
-- primary key.
SELECT g.id, p.user_id, p.amount, g.currency, p.charge, p.provider_transaction, p.joined_at, p.updated_at, p.revision
FROM group_order AS g JOIN participant AS p ON p.group_ref = g.seq
WHERE g.id = ANY ($1::TEXT[]);
