-- Finds the numbers of texts; they never change, so each is asked for once. Those that are not there are new.
-- Index: the one on the text.
SELECT word_ref, text FROM word WHERE text = ANY ($1::TEXT[]);
