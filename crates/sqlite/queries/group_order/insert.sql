-- Adds a group order. Guarded by its id. One row, or a broken constraint. Index: writes the primary key and the one of ids.
INSERT INTO group_order (id, leader, deadline, charge_via, currency, min_participants, status, participants, attempts,
    retries, next_attempt_at, last_error, created_at, updated_at, revision)
VALUES (:id, :leader, :deadline, :charge_via, :currency, :min_participants, :status, :participants, :attempts,
    :retries, :next_attempt_at, :last_error, :created_at, :updated_at, :revision);
