-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO due (lane, member, seq, due_at, created_at, attempts, token, leased, body)
VALUES (:lane, :member, :seq, :due_at, :created_at, :attempts, :token, :leased, :body);
