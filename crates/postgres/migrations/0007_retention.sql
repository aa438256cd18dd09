-- Records that nobody needs any more may be forgotten by age: refusals, callbacks that were heard, notices that were sent. The
-- answer of an effect is lasting, and so is every one of an older version, which did not say.
ALTER TABLE answer ADD COLUMN lasting BOOLEAN NOT NULL DEFAULT TRUE;

CREATE INDEX answer_by_age ON answer (at, key) WHERE NOT lasting;
CREATE INDEX callback_by_age ON callback (received_at, provider, event);
CREATE INDEX notice_by_age ON notice (updated_at, id);

DROP TRIGGER callback_keeps_rows ON callback;
CREATE TRIGGER callback_keeps_rows BEFORE UPDATE OR TRUNCATE ON callback
EXECUTE FUNCTION keep_rows('callback is append-only');

DROP TRIGGER notice_keeps_rows ON notice;
CREATE TRIGGER notice_keeps_rows BEFORE TRUNCATE ON notice
EXECUTE FUNCTION keep_rows('notices are never deleted as a whole');

-- 0 is the state PENDING.
CREATE TRIGGER notice_keeps_unsent BEFORE DELETE ON notice FOR EACH ROW WHEN (OLD.status = 0)
EXECUTE FUNCTION keep_rows('a notice that was not sent is never deleted');
