-- Keeps a new text. Guarded by its uniqueness. Zero rows cannot be. Index: writes the one on the text.
INSERT INTO word (text) VALUES (:text);
