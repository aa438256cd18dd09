-- Adds lines of direct orders. Guarded by order_line_by_place: nobody holds the place. Fewer rows: a purchase is not there.
-- Index: purchase_by_id; writes the primary key and order_line_by_place.
INSERT INTO order_line (purchase, line, user_id, sku_ref, quantity, place, unit_price)
SELECT p.seq, c.line, p.user_id, c.sku_ref, c.quantity, c.place, c.unit_price
FROM unnest($1::UUID[], $2::INTEGER[], $3::INTEGER[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[])
    AS c (id, line, sku_ref, quantity, place, unit_price)
JOIN purchase AS p ON p.id = c.id;
