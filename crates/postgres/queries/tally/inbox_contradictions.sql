-- Counts purchases whose inbox result contradicts their state: an order that was said and is not there, a rejection beside
-- an order, a refusal of a reservation that goes on. The masks have a bit for each reservation state that a rejection,
-- and that the refusal of a late message, allows. One row. Index: none, it reads everything.
SELECT count(*) FROM purchase AS p
WHERE p.inbox_result IS NOT NULL
    AND CASE
        WHEN p.inbox_result = $1::SMALLINT THEN p.order_status IS NULL
        WHEN p.inbox_result = $2::SMALLINT THEN
            p.order_status IS NOT NULL OR p.reservation IS NULL OR ($3::INTEGER >> p.reservation) & 1 = 0
        ELSE p.reservation IS NULL OR ($4::INTEGER >> p.reservation) & 1 = 0
    END;
