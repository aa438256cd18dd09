//! The reservation, as the store of record knows it (FS-04, reference 003 §8.1).
//!
//! Invariant: `ORDER_CREATED` and `ORDER_REJECTED` both leave `RESERVED` by one guarded update, so an order
//! and a compensation can never both come of one reservation. Read next: [`super::admission`].

use super::{Machine, rows, states};

states! {
    /// Business state of a reservation.
    Reservation {
        /// Admitted; no decision about an order yet.
        Reserved "RESERVED",
        /// The order exists.
        OrderCreated "ORDER_CREATED",
        /// Durably refused.
        OrderRejected "ORDER_REJECTED",
        /// Compensation is authorized and under way.
        Compensating "COMPENSATING",
        /// Admission got its units back, once.
        Compensated "COMPENSATED",
        /// The order was cancelled and its stock released.
        Cancelled "CANCELLED",
        /// Frozen until a person decides.
        ManualReview "MANUAL_REVIEW",
    }
}

/// What happens to a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationEvent {
    /// The order was written.
    CreateOrder,
    /// Final stock or limit said no.
    Reject,
    /// The business deadline passed.
    PassDeadline,
    /// The compensator took the case.
    Authorize,
    /// Admission confirmed the release.
    Compensate,
    /// The order was cancelled.
    Cancel,
    /// Late money brought the order back.
    Reinstate,
    /// A person, or a contradiction, stops everything.
    Freeze,
}

impl Machine for Reservation {
    type Event = ReservationEvent;
    type Effect = ();
    const NAME: &'static str = "reservation";
    const DOC: &'static str = "Business state of a reservation in the store of record.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, ReservationEvent>] = rows! {
        "order_created": Reserved - CreateOrder -> OrderCreated, when "stock left and the buyer is under the limit", effect (), message "ORDER_CREATED";
        "order_rejected": Reserved - Reject -> OrderRejected, when "final stock is short or the limit is reached", effect (), message "RESERVATION_REJECTED";
        "deadline_passed": Reserved - PassDeadline -> OrderRejected, when "business_deadline has passed and no order exists", effect (), message "RESERVATION_REJECTED";
        "compensation_authorized": OrderRejected - Authorize -> Compensating, when "the compensation task is claimed", effect (), message "";
        "compensated": Compensating - Compensate -> Compensated, when "admission answered applied or already applied", effect (), message "";
        "reservation_cancelled": OrderCreated - Cancel -> Cancelled, when "the order is cancelled", effect (), message "ORDER_CANCELLED";
        "reservation_reinstated": Cancelled - Reinstate -> OrderCreated, when "the order is reinstated", effect (), message "ORDER_REINSTATED";
        "frozen_reserved": Reserved - Freeze -> ManualReview, when "a contradiction was found", effect (), message "";
        "frozen_created": OrderCreated - Freeze -> ManualReview, when "a contradiction was found", effect (), message "";
        "frozen_rejected": OrderRejected - Freeze -> ManualReview, when "a contradiction was found", effect (), message "";
        "frozen_compensating": Compensating - Freeze -> ManualReview, when "admission contradicts the store", effect (), message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}

impl Reservation {
    /// Whether a message that arrives now is late: a durable rejection or cancellation stands (FS-07).
    #[must_use]
    pub fn refuses_late_messages(self) -> bool {
        match self {
            Self::OrderRejected | Self::Compensating | Self::Compensated | Self::Cancelled => true,
            Self::Reserved | Self::OrderCreated | Self::ManualReview => false,
        }
    }
}
