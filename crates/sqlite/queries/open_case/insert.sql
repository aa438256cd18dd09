-- Opens a case. Guarded by kind and subject. Zero rows: it is open already, and nothing happens.
-- Index: writes the one on kind and subject.
INSERT INTO open_case (kind, subject, detail, at) VALUES (:kind, :subject, :detail, :at)
ON CONFLICT (kind, subject) DO NOTHING;
