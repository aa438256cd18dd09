-- Adds a notice. Guarded by the uniqueness of its id. Zero rows: it is there already, and nothing happens.
-- Index: writes the one on the id.
INSERT INTO notice (id, kind, subject, recipient, detail, status, created_at, updated_at, revision)
VALUES (:id, :kind, :subject, :recipient, :detail, :status, :created_at, :updated_at, :revision)
ON CONFLICT (id) DO NOTHING;
