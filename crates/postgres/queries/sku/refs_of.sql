-- Finds the numbers behind keys; they never change, so each is asked for once. Those that are not there do not exist (yet).
-- Index: the one on the key.
SELECT s.sku_ref, s.activity_id, s.sku_id
FROM unnest($1::TEXT[], $2::TEXT[]) AS k (activity_id, sku_id)
JOIN sku AS s ON s.activity_id = k.activity_id AND s.sku_id = k.sku_id;
