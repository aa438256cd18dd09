-- Reads what is there when a claim is lost, for the operator. Zero rows: the member is gone. Index: due_once.
SELECT seq, token, leased FROM due WHERE lane = $1 AND member = $2;
