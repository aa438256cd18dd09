-- Finds the text behind a number; it never changes, so it is asked for once. Zero rows: no such text, which a foreign key
-- rules out. Index: the primary key.
SELECT text FROM word WHERE word_ref = :word_ref;
