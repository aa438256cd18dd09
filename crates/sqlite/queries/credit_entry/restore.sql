-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO credit_entry (account, number, kind, amount, balance_after, job, reference, reason, actor, created_at)
VALUES (:account, :number, :kind, :amount, :balance_after, :job, :reference, :reason, :actor, :created_at);
