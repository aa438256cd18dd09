-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO group_order (
    seq, id, leader, deadline, charge_via, currency, min_participants, status, participants, attempts, retries,
    next_attempt_at, last_error, created_at, updated_at, revision)
VALUES (
    :seq, :id, :leader, :deadline, :charge_via, :currency, :min_participants, :status, :participants, :attempts,
    :retries, :next_attempt_at, :last_error, :created_at, :updated_at, :revision);
