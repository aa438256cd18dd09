-- Pauses a lane, or resumes it. Guards nothing: a repeat is harmless. One row. Index: the primary key.
INSERT INTO lane (lane, paused) VALUES ($1, $2)
ON CONFLICT (lane) DO UPDATE SET paused = excluded.paused;
