-- Changes a participant: the amount while the group is open, the charge afterwards. Guard: the revision it was decided on.
-- Zero rows: the guard is lost; the caller reads what is there. Index: the primary key.
UPDATE participant SET
    amount = :amount, charge = :charge, provider_transaction = :provider_transaction, updated_at = :updated_at,
    revision = revision + 1
WHERE group_ref = :group_ref AND user_id = :user_id AND revision = :revision;
