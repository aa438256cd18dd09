-- Pauses a lane, or resumes it. Guards nothing: a repeat is harmless. Zero rows cannot be. Index: the primary key.
INSERT INTO lane (lane, paused) VALUES (:lane, :paused)
ON CONFLICT (lane) DO UPDATE SET paused = excluded.paused;
