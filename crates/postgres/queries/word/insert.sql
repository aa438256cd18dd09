-- Keeps new texts, in the order of the texts, so that two transactions do not wait for each other. Guarded by their uniqueness.
-- Fewer rows: somebody else has kept one. Index: writes the one on the text.
INSERT INTO word (text) SELECT t FROM unnest($1::TEXT[]) AS t ORDER BY t ON CONFLICT (text) DO NOTHING;
