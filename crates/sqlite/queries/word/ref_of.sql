-- Finds the number of a text; it never changes, so it is asked for once. Zero rows: the text is new.
-- Index: the one on the text.
SELECT word_ref FROM word WHERE text = :text;
