-- Puts dumped rows back as they were, in their order. Guarded by their keys and checks. Fewer rows cannot be. Index: writes
-- all of the table.
INSERT INTO order_line (
    purchase, line, user_id, sku_ref, quantity, place, unit_price)
SELECT
    d.purchase, d.line, d.user_id, d.sku_ref, d.quantity, d.place, d.unit_price
FROM unnest(
    $1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    WITH ORDINALITY AS d (
        purchase, line, user_id, sku_ref, quantity, place, unit_price, ord)
ORDER BY d.ord;
