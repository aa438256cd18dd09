//! The order (requirements.md §3), with the stock each move carries.
//!
//! Invariant: every move's effects sum to zero, so `initial = available + occupied + sold` always holds. An
//! order is born `CREATED` with [`BIRTH`]. Payment wins over a cancellation until `CANCELLED` is written.

use super::{Effect, Machine, rows, states};

states! {
    /// State of an order.
    Order {
        /// Stock is locked, nobody has paid.
        Created "CREATED",
        /// A payment attempt is open.
        Paying "PAYING",
        /// Money was taken.
        Paid "PAID",
        /// A refund is under way.
        Refunding "REFUNDING",
        /// All money went back.
        Refunded "REFUNDED",
        /// Waiting for proof that nothing was paid.
        CancelPending "CANCEL_PENDING",
        /// Cancelled; stock released.
        Cancelled "CANCELLED",
        /// Frozen until a person decides.
        ManualReview "MANUAL_REVIEW",
    }
}

/// What happens to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderEvent {
    /// A payment attempt was opened.
    StartPayment,
    /// The provider proved a payment.
    Pay,
    /// Time is up.
    Expire,
    /// The buyer asked.
    RequestCancel,
    /// No payment can come any more.
    Cancel,
    /// A refund was asked for.
    StartRefund,
    /// The provider refunded all that was paid.
    CompleteRefund,
    /// The refund was partial or failed.
    EndRefund,
    /// The provider took a completed refund back.
    ReturnRefund,
    /// Late money and free stock: the order lives again.
    Reinstate,
    /// A person, or a contradiction, stops everything.
    Freeze,
}

/// Change of the SKU's stock, per unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockEffect {
    /// Free units.
    pub available: i8,
    /// Units locked by unpaid orders.
    pub occupied: i8,
    /// Units of paid orders.
    pub sold: i8,
}

impl Effect for StockEffect {
    fn describe(&self) -> String {
        if *self == NONE {
            return String::new();
        }
        format!("available {:+}, occupied {:+}, sold {:+}", self.available, self.occupied, self.sold)
    }
}

const fn stock(available: i8, occupied: i8, sold: i8) -> StockEffect {
    StockEffect { available, occupied, sold }
}

const NONE: StockEffect = stock(0, 0, 0);

/// What the birth of an order does to stock.
pub const BIRTH: StockEffect = stock(-1, 1, 0);

impl Machine for Order {
    type Event = OrderEvent;
    type Effect = StockEffect;
    const NAME: &'static str = "order";
    const DOC: &'static str = "An order, with the stock each move carries.";
    const STATES: &'static [Self] = Self::LIST;
    const ROWS: &'static [super::Row<Self, OrderEvent, StockEffect>] = rows! {
        "payment_started": Created - StartPayment -> Paying, when "not yet due", effect NONE, message "";
        "paid_at_once": Created - Pay -> Paid, when "the provider proved it", effect stock(0, -1, 1), message "ORDER_PAID";
        "paid": Paying - Pay -> Paid, when "the provider proved it", effect stock(0, -1, 1), message "ORDER_PAID";
        "paid_in_grace": CancelPending - Pay -> Paid, when "the provider proved it", effect stock(0, -1, 1), message "ORDER_PAID";
        "expired": Created - Expire -> CancelPending, when "cancel_due_at has come", effect NONE, message "";
        "expired_paying": Paying - Expire -> CancelPending, when "cancel_due_at has come", effect NONE, message "";
        "cancel_requested": Created - RequestCancel -> CancelPending, when "the buyer asked", effect NONE, message "";
        "cancel_requested_paying": Paying - RequestCancel -> CancelPending, when "the buyer asked", effect NONE, message "";
        "cancelled": CancelPending - Cancel -> Cancelled, when "every attempt is proved unpaid or closed", effect stock(1, -1, 0), message "ORDER_CANCELLED";
        "refund_started": Paid - StartRefund -> Refunding, when "refunds do not pass what was paid", effect NONE, message "";
        "refunded": Refunding - CompleteRefund -> Refunded, when "all that was paid went back", effect NONE, message "ORDER_REFUNDED";
        "refund_ended": Refunding - EndRefund -> Paid, when "the refund was partial or failed", effect NONE, message "";
        "refund_returned": Refunded - ReturnRefund -> Paid, when "the provider took a refund back", effect NONE, message "";
        "reinstated": Cancelled - Reinstate -> Paid, when "late money, and stock can be locked again", effect stock(-1, 0, 1), message "ORDER_REINSTATED";
        "frozen_created": Created - Freeze -> ManualReview, when "a contradiction was found", effect NONE, message "";
        "frozen_paying": Paying - Freeze -> ManualReview, when "a contradiction was found", effect NONE, message "";
        "frozen_paid": Paid - Freeze -> ManualReview, when "a contradiction was found", effect NONE, message "";
        "frozen_refunding": Refunding - Freeze -> ManualReview, when "a contradiction was found", effect NONE, message "";
        "frozen_cancel_pending": CancelPending - Freeze -> ManualReview, when "a contradiction was found", effect NONE, message "";
    };

    fn name(self) -> &'static str {
        self.text()
    }
}

impl Order {
    /// Whether the order holds a place under `per_user_limit` (FS-20).
    #[must_use]
    pub fn holds_a_place(self, cancelled_frees_limit: bool) -> bool {
        match self {
            Self::Cancelled => !cancelled_frees_limit,
            Self::Created
            | Self::Paying
            | Self::Paid
            | Self::Refunding
            | Self::Refunded
            | Self::CancelPending
            | Self::ManualReview => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_conserves_stock() {
        assert_eq!(BIRTH.available + BIRTH.occupied + BIRTH.sold, 0);
        for row in Order::ROWS {
            assert_eq!(row.effect.available + row.effect.occupied + row.effect.sold, 0, "{}", row.label);
        }
    }

    #[test]
    fn dr_01_payment_beats_a_time_out_until_the_cancel_is_written() {
        for state in [Order::Created, Order::Paying, Order::CancelPending] {
            assert_eq!(state.next(OrderEvent::Pay).unwrap().to, Order::Paid);
        }
        assert!(Order::Cancelled.next(OrderEvent::Pay).is_none());
        assert!(Order::Paid.next(OrderEvent::Cancel).is_none());
        assert!(Order::Created.next(OrderEvent::Cancel).is_none());
    }
}
