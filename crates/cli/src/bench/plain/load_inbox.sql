-- What an earlier delivery of the message left behind. By primary key; the row is there, since the claim lost to it.
SELECT payload_hash
FROM consumer_inbox
WHERE consumer_group = ?1
  AND message_id = ?2;
