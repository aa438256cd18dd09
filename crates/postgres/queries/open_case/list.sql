-- Lists cases, newest first. Guards nothing. Zero rows: there are none (any more). Index: the primary key.
SELECT seq, kind, subject, detail, at FROM open_case WHERE seq < $1 ORDER BY seq DESC LIMIT $2;
