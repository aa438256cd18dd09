-- Adds a participant. Guarded by group and user. One row, or a broken constraint. Index: writes the primary key.
INSERT INTO participant (group_ref, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision)
VALUES (:group_ref, :user_id, :amount, :charge, :provider_transaction, :joined_at, :updated_at, :revision);
