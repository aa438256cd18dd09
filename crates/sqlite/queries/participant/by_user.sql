-- Reads one participant of a group. Guards nothing. Zero rows: the user takes no part. Index: the one of group ids, then
-- the primary key.
SELECT p.user_id, p.amount, g.currency, p.charge, p.provider_transaction, p.joined_at, p.updated_at, p.revision
FROM group_order AS g JOIN participant AS p ON p.group_ref = g.seq
WHERE g.id = :id AND p.user_id = :user_id;
