//! The same reservation, as admission knows it, with the counters that each move carries.
//!
//! Invariant (reference 003 §13.4): every move's effects sum to zero, so `initial = available + open_reserved +
//! committed` holds after every move, whatever the order in which projections arrive. `ABSENT` is where a
//! reservation starts; a cancellation that overtakes the creation has rows of its own.

use super::reservation::Reservation;
use super::{Effect, Machine, rows, states};

states! {
    /// Admission's view of a reservation.
    Admission {
        /// Admission never saw it.
        Absent "ABSENT",
        /// Units are set aside.
        Reserved "RESERVED",
        /// The order exists; units are committed.
        OrderCreated "ORDER_CREATED",
        /// Units went back after a rejection.
        Compensated "COMPENSATED",
        /// Units went back after a cancellation.
        Cancelled "CANCELLED",
        /// Late money brought a cancelled order back; units are committed again.
        Reinstated "REINSTATED",
    }
}

impl Admission {
    /// The reservation's state as a caller should hear it, as long as the store of record knows nothing of it.
    #[must_use]
    pub fn reservation_status(self) -> Reservation {
        match self {
            Self::Absent | Self::Reserved => Reservation::Reserved,
            Self::OrderCreated | Self::Reinstated => Reservation::OrderCreated,
            Self::Compensated => Reservation::Compensated,
            Self::Cancelled => Reservation::Cancelled,
        }
    }

    /// Whether it holds a place under the buyer's limit, as admission sees it: let in, and neither given back nor freed
    /// (FS-20).
    #[must_use]
    pub fn holds_a_place(self, cancelled_frees_limit: bool) -> bool {
        match self {
            Self::Reserved | Self::OrderCreated | Self::Reinstated => true,
            Self::Absent | Self::Compensated => false,
            Self::Cancelled => !cancelled_frees_limit,
        }
    }
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionEvent {
    /// A buyer was let in.
    Reserve,
    /// `ORDER_CREATED` was projected.
    ProjectCreated,
    /// A durable compensation was carried out.
    Compensate,
    /// `ORDER_CANCELLED` was projected.
    ProjectCancelled,
    /// `ORDER_REINSTATED` was projected.
    ProjectReinstated,
}

/// Change of the bucket's counters, per unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterEffect {
    /// Units that can be reserved.
    pub available: i8,
    /// Units reserved without an order.
    pub open_reserved: i8,
    /// Units with an order.
    pub committed: i8,
}

impl Effect for CounterEffect {
    fn describe(&self) -> String {
        format!(
            "available {:+}, open_reserved {:+}, committed {:+}",
            self.available, self.open_reserved, self.committed
        )
    }
}

const fn counters(available: i8, open_reserved: i8, committed: i8) -> CounterEffect {
    CounterEffect { available, open_reserved, committed }
}

impl Machine for Admission {
    type Event = AdmissionEvent;
    type Effect = CounterEffect;
    const NAME: &'static str = "admission";
    const DOC: &'static str = "Admission's view of a reservation, with the counters each move carries.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, AdmissionEvent, CounterEffect>] = rows! {
        "admitted": Absent - Reserve -> Reserved, when "open, new request, under the limit, units left", effect counters(-1, 1, 0), message "";
        "created_projected": Reserved - ProjectCreated -> OrderCreated, when "the store has the order", effect counters(0, -1, 1), message "";
        "direct_projected": Absent - ProjectCreated -> OrderCreated, when "a direct order never went through admission", effect counters(-1, 0, 1), message "";
        "release_applied": Reserved - Compensate -> Compensated, when "the store authorized it", effect counters(1, -1, 0), message "";
        "cancel_projected": OrderCreated - ProjectCancelled -> Cancelled, when "the store cancelled the order", effect counters(1, 0, -1), message "";
        "cancel_overtook_create": Reserved - ProjectCancelled -> Cancelled, when "the creation's projection is still on its way", effect counters(1, -1, 0), message "";
        "cancel_overtook_direct": Absent - ProjectCancelled -> Cancelled, when "the creation's projection is still on its way", effect counters(0, 0, 0), message "";
        "reinstate_projected": Cancelled - ProjectReinstated -> Reinstated, when "the store locked stock again", effect counters(-1, 0, 1), message "";
        "reinstate_overtook_cancel": OrderCreated - ProjectReinstated -> Reinstated, when "the cancellation's projection is still on its way", effect counters(0, 0, 0), message "";
        "reinstate_overtook_all": Reserved - ProjectReinstated -> Reinstated, when "both earlier projections are still on their way", effect counters(0, -1, 1), message "";
        "reinstate_overtook_direct": Absent - ProjectReinstated -> Reinstated, when "both earlier projections are still on their way", effect counters(-1, 0, 1), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fs_13_every_move_conserves_the_counters() {
        for row in Admission::ROWS {
            let sum = row.effect.available + row.effect.open_reserved + row.effect.committed;
            assert_eq!(sum, 0, "{}", row.label);
        }
    }

    #[test]
    fn c_15_c_16_c_17_projections_in_any_order_end_alike() {
        let orders = [
            [AdmissionEvent::ProjectCreated, AdmissionEvent::ProjectCancelled],
            [AdmissionEvent::ProjectCancelled, AdmissionEvent::ProjectCreated],
        ];
        for start in [Admission::Reserved, Admission::Absent] {
            for events in orders {
                let (mut state, mut available) = (start, 0);
                for event in events.into_iter().chain(events) {
                    if let Some(row) = state.next(event) {
                        state = row.to;
                        available += row.effect.available;
                    }
                }
                assert_eq!(state, Admission::Cancelled);
                let taken = if start == Admission::Reserved { 1 } else { 0 };
                assert_eq!(available, taken, "{start:?} {events:?}");
            }
        }
    }
}
