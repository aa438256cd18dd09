-- Notes how the message ended. Zero rows cannot be: the same transaction inserted the row. By primary key.
UPDATE consumer_inbox
SET result_code  = ?3,
    order_id     = ?4,
    processed_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE consumer_group = ?1
  AND message_id = ?2;
