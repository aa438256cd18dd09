-- Finds reservations that stay too long in a state, for reconciliation.
CREATE INDEX idx_inventory_reservation_reconcile
    ON inventory_reservation (status, updated_at, reservation_id);
