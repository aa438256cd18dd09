-- Puts back how far a counter has come. Guards nothing: it is done where nothing was counted yet. Zero rows: there is no such
-- counter. Index: the primary key.
UPDATE counter SET value = d.value FROM (SELECT :name AS name, :value AS value) AS d WHERE counter.name = d.name;
