-- Removes a member whoever holds it. Guards nothing. Zero rows: it is gone already, and nothing happens.
-- Index: the one on lane and member.
DELETE FROM due WHERE lane = :lane AND member = :member;
