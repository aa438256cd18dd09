-- Appends a ledger entry. Guarded by its number, by its job and kind or its reference, and by the trigger that lets it only
-- go on from the entry before it. One row, or a broken constraint. Index: writes the primary key and one of the two others.
INSERT INTO credit_entry
    (account, number, kind, amount, balance_after, job, reference, reason, actor, created_at)
VALUES (:account, :number, :kind, :amount, :balance_after, :job, :reference, :reason, :actor, :created_at);
