-- Reads what is there when a claim is lost, for the operator. Zero rows: the member is gone.
-- Index: the one on lane and member.
SELECT seq, token, leased FROM due WHERE lane = :lane AND member = :member;
