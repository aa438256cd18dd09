-- Opens cases. Guarded by kind and subject. Fewer rows: one is open already, and nothing happens.
-- Index: writes the one on kind and subject.
INSERT INTO open_case (kind, subject, detail, at)
SELECT c.kind, c.subject, c.detail, c.at
FROM unnest($1::SMALLINT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[]) WITH ORDINALITY AS c (kind, subject, detail, at, ord)
ORDER BY c.ord
ON CONFLICT (kind, subject) DO NOTHING;
