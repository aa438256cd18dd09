-- Notes how the message ended. Zero rows cannot be: the same transaction inserted the row. By primary key.
UPDATE consumer_inbox
SET result_code = 'ORDER_CREATED', order_id = $3, processed_at = clock_timestamp()
WHERE consumer_group = $1 AND message_id = $2;
