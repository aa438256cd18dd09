-- Records that nobody needs any more may be forgotten by age: refusals, callbacks that were heard, notices that were sent. The
-- answer of an effect is lasting, and so is every one of an older version, which did not say.
ALTER TABLE answer ADD COLUMN lasting INTEGER NOT NULL DEFAULT 1 CHECK (lasting IN (0, 1));

CREATE INDEX answer_by_age ON answer (at) WHERE lasting = 0;
CREATE INDEX callback_by_age ON callback (received_at);
CREATE INDEX notice_by_age ON notice (updated_at);

DROP TRIGGER callback_keeps_rows;
DROP TRIGGER notice_keeps_rows;

-- 0 is the state PENDING.
CREATE TRIGGER notice_keeps_rows BEFORE DELETE ON notice WHEN OLD.status = 0
BEGIN SELECT RAISE(ABORT, 'a notice that was not sent is never deleted'); END;

-- They went with the table that the migration before this one made anew.
CREATE TRIGGER open_case_keeps_rows BEFORE DELETE ON open_case
BEGIN SELECT RAISE(ABORT, 'open_case is append-only'); END;
CREATE TRIGGER open_case_keeps_values BEFORE UPDATE ON open_case
BEGIN SELECT RAISE(ABORT, 'open_case is append-only'); END;
