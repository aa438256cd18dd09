-- Reads the revision of a participant, to say what is there where a guard was lost. Zero rows: the user takes no part.
-- Index: the primary key.
SELECT revision FROM participant WHERE group_ref = :group_ref AND user_id = :user_id;
