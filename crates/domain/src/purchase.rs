//! The purchase: one slim row that is inbox entry, reservation, order and ledger fact at once (design.md §10).
//!
//! Two owners write to it, each only its own columns and only through its own machine: admission (column
//! `admission`, where admission lives in the store) and the store of record (`reservation`, `inbox`, `order`).
//! Invariant: an `order` exists exactly when `reservation` has passed `ORDER_CREATED`, or the purchase is direct.
//! Deliberately absent: history. What later changed is kept as [`crate::changes::Transition`]s.

use std::sync::Arc;

use crate::event::OrderCreateRequested;
use crate::id::{CompensationId, PurchaseId, RequestId, SkuKey, UserId};
use crate::machine::admission::Admission;
use crate::machine::order::Order as OrderStatus;
use crate::machine::reservation::Reservation as ReservationStatus;
use crate::money::Money;
use crate::time::Timestamp;

/// How a purchase came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Through admission; exactly one line.
    Flash,
    /// Straight into the store (OT-02); one or more lines.
    Direct,
}

/// One SKU of a purchase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Activity and SKU.
    pub key: SkuKey,
    /// Units, at least 1.
    pub quantity: u32,
    /// First of the buyer's places that the line holds, counted in units from 0; negative once the place is
    /// free again. With the buyer and the SKU it is unique: the last line of defence of the per-user limit.
    pub place: i64,
    /// Price of one unit when the order was made; `None` while there is no order.
    pub unit_price: Option<Money>,
}

/// Why a reservation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The stock of record was short (FS-09).
    StockShort,
    /// The buyer already had as many as allowed (FS-09).
    UserLimit,
    /// The business deadline passed (FS-15).
    BusinessDeadlineExceeded,
}

impl Reason {
    /// Every reason; the position is the code that stores keep.
    pub const ALL: [Self; 3] = [Self::StockShort, Self::UserLimit, Self::BusinessDeadlineExceeded];

    /// The reason code of the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StockShort => "STOCK_SHORT",
            Self::UserLimit => "USER_LIMIT",
            Self::BusinessDeadlineExceeded => "BUSINESS_DEADLINE_EXCEEDED",
        }
    }
}

/// What the inbox remembers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InboxResult {
    /// The order was created.
    OrderCreated,
    /// The order was refused.
    OrderRejected,
    /// The message came after a durable rejection or cancellation (FS-07).
    LateRejected,
}

impl InboxResult {
    /// Every result; the position is the code that stores keep.
    pub const ALL: [Self; 3] = [Self::OrderCreated, Self::OrderRejected, Self::LateRejected];

    /// The result code.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OrderCreated => "ORDER_CREATED",
            Self::OrderRejected => "ORDER_REJECTED",
            Self::LateRejected => "LATE_REJECTED",
        }
    }
}

/// The inbox entry of the purchase's message (FS-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inbox {
    /// SHA-256 of the payload.
    pub payload_hash: [u8; 32],
    /// What came of it.
    pub result: InboxResult,
}

/// The order half of a purchase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// State.
    pub status: OrderStatus,
    /// What is to be paid.
    pub total: Money,
    /// What was paid, in minor units of the total's currency.
    pub paid: i64,
    /// What went back, likewise.
    pub refunded: i64,
    /// When it was written.
    pub created_at: Timestamp,
    /// Until when the buyer should pay.
    pub expires_at: Timestamp,
    /// When an unpaid order is cancelled: `expires_at` + grace.
    pub cancel_due_at: Timestamp,
    /// When it was paid.
    pub paid_at: Option<Timestamp>,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// Why it was cancelled.
    pub cancel_reason: Option<Arc<str>>,
}

/// Inbox entry, reservation, order and ledger fact in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// The id from which all others follow.
    pub id: PurchaseId,
    /// Where the store keeps it: opaque to everybody else, 0 before it is stored.
    pub handle: i64,
    /// How it came in.
    pub route: Route,
    /// The buyer.
    pub user: UserId,
    /// The buyer's intent.
    pub request: RequestId,
    /// What is bought.
    pub lines: Vec<Line>,
    /// Admission's view; `Absent` where admission lives elsewhere, or never saw it.
    pub admission: Admission,
    /// Which compensation gave the units back, once one has.
    pub compensation: Option<CompensationId>,
    /// The store of record's view; `None` while it knows nothing of the reservation.
    pub reservation: Option<ReservationStatus>,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// When admission let it in (direct: when it was asked for).
    pub reserved_at: Timestamp,
    /// Until when an order must exist.
    pub business_deadline: Timestamp,
    /// What the inbox knows.
    pub inbox: Option<Inbox>,
    /// The order, once there is one.
    pub order: Option<Order>,
    /// Last change.
    pub updated_at: Timestamp,
    /// Counts every change; guards the next one.
    pub revision: i64,
}

impl Purchase {
    /// A reservation that nobody has decided on yet, as its message tells it, with the gate's state of it and the first of the
    /// buyer's places that it holds.
    #[must_use]
    pub fn open(
        message: OrderCreateRequested,
        admission: Admission,
        place: i64,
        updated_at: Timestamp,
    ) -> Self {
        let line = Line { key: message.key, quantity: message.quantity, place, unit_price: None };
        Self {
            id: message.purchase,
            handle: 0,
            route: Route::Flash,
            user: message.user,
            request: message.request,
            lines: vec![line],
            admission,
            compensation: None,
            reservation: None,
            reason: None,
            reserved_at: message.reserved_at,
            business_deadline: message.business_deadline,
            inbox: None,
            order: None,
            updated_at,
            revision: 0,
        }
    }

    /// Units of a SKU in this purchase.
    #[must_use]
    pub fn units_of(&self, key: &SkuKey) -> u32 {
        self.lines.iter().filter(|line| line.key == *key).map(|line| line.quantity).sum()
    }

    /// The reservation's state as a caller should hear it: the store of record before admission.
    #[must_use]
    pub fn reservation_status(&self) -> ReservationStatus {
        self.reservation.unwrap_or_else(|| self.admission.reservation_status())
    }

    /// Whether the purchase holds a place under `per_user_limit`, as the store of record sees it (FS-20).
    /// A reservation that only admission knows holds none yet.
    #[must_use]
    pub fn holds_a_place(&self, cancelled_frees_limit: bool) -> bool {
        self.order.as_ref().is_some_and(|order| order.status.holds_a_place(cancelled_frees_limit))
    }

    /// Whether it holds a place as admission sees it: let in, and neither given back nor freed.
    #[must_use]
    pub fn is_admitted(&self, cancelled_frees_limit: bool) -> bool {
        if self.admission == Admission::Absent {
            return self.holds_a_place(cancelled_frees_limit);
        }
        self.admission.holds_a_place(cancelled_frees_limit)
    }
}
