-- Takes a participant out. Guard: the revision it was decided on; a trigger refuses one whose charge has begun. Zero rows:
-- the guard is lost; the caller reads what is there. Index: the primary key.
DELETE FROM participant WHERE group_ref = :group_ref AND user_id = :user_id AND revision = :revision;
