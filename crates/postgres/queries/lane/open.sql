-- Makes the row of a lane that has none. Guards nothing. Zero rows: somebody else has made it. Index: the primary key.
INSERT INTO lane (lane, paused) VALUES ($1, FALSE) ON CONFLICT (lane) DO NOTHING;
