-- Puts a dumped row back as it was. Guarded by its keys and checks. Zero rows cannot be. Index: writes all of the table.
INSERT INTO participant (group_ref, user_id, amount, charge, provider_transaction, joined_at, updated_at, revision)
VALUES (:group_ref, :user_id, :amount, :charge, :provider_transaction, :joined_at, :updated_at, :revision);
