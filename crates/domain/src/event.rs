//! What is said between the parts: the message that asks for an order, and the events that tell of decisions.
//!
//! Invariants: a message's content is a pure function of its reservation, so its id and its hash never change;
//! an event's id is a pure function of its purchase and kind. Deliberately absent: the wire format (engine).

use crate::id::{EventId, IdKind, PurchaseId, RequestId, SkuKey, UserId};
use crate::purchase::{Line, Purchase, Reason};
use crate::time::Timestamp;

/// Version of the message's content.
pub const SCHEMA_VERSION: u32 = 1;

/// `ORDER_CREATE_REQUESTED`: everything needed to create the order (reference 003 §8.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderCreateRequested {
    /// From which reservation, message and order id follow.
    pub purchase: PurchaseId,
    /// Activity and SKU.
    pub key: SkuKey,
    /// The buyer.
    pub user: UserId,
    /// The buyer's intent.
    pub request: RequestId,
    /// Units.
    pub quantity: u32,
    /// When admission let it in.
    pub reserved_at: Timestamp,
    /// Until when an order must exist.
    pub business_deadline: Timestamp,
}

impl OrderCreateRequested {
    /// The message of a flash purchase: the same ids and the same content, however often it is rebuilt (FS-03).
    ///
    /// # Panics
    /// Where the purchase has no line.
    #[must_use]
    pub fn of(purchase: &Purchase) -> Self {
        let line = &purchase.lines[0];
        Self {
            purchase: purchase.id,
            key: line.key.clone(),
            user: purchase.user.clone(),
            request: purchase.request.clone(),
            quantity: line.quantity,
            reserved_at: purchase.reserved_at,
            business_deadline: purchase.business_deadline,
        }
    }
}

/// What a decision tells the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Stable id.
    pub id: EventId,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub fact: Fact,
}

/// The facts that travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// An order exists.
    OrderCreated {
        /// Which.
        purchase: PurchaseId,
        /// Whose.
        user: UserId,
        /// What was bought.
        lines: Vec<Line>,
    },
    /// An order was cancelled and its stock released.
    OrderCancelled {
        /// Which.
        purchase: PurchaseId,
        /// Whose.
        user: UserId,
        /// What was bought.
        lines: Vec<Line>,
    },
    /// Money was taken for an order.
    OrderPaid {
        /// Which.
        purchase: PurchaseId,
        /// Whose.
        user: UserId,
    },
    /// All money of an order went back.
    OrderRefunded {
        /// Which.
        purchase: PurchaseId,
        /// Whose.
        user: UserId,
    },
    /// Late money brought a cancelled order back; its stock is locked again.
    OrderReinstated {
        /// Which.
        purchase: PurchaseId,
        /// Whose.
        user: UserId,
        /// What was bought.
        lines: Vec<Line>,
    },
    /// A reservation was refused; its compensation is on its way.
    ReservationRejected {
        /// Which.
        purchase: PurchaseId,
        /// Whose.
        user: UserId,
        /// Why.
        reason: Reason,
    },
    /// The stock of record was adjusted by a person.
    StockAdjusted {
        /// Of what.
        key: SkuKey,
        /// By how many units.
        delta: i64,
        /// The how-manieth adjustment of this SKU, from 1.
        number: u32,
    },
}

impl Fact {
    /// The event type as it is written on the wire.
    #[must_use]
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::OrderCreated { .. } => "ORDER_CREATED",
            Self::OrderCancelled { .. } => "ORDER_CANCELLED",
            Self::OrderPaid { .. } => "ORDER_PAID",
            Self::OrderRefunded { .. } => "ORDER_REFUNDED",
            Self::OrderReinstated { .. } => "ORDER_REINSTATED",
            Self::ReservationRejected { .. } => "RESERVATION_REJECTED",
            Self::StockAdjusted { .. } => "STOCK_ADJUSTED",
        }
    }
}

impl Fact {
    /// Which purchase it is about, if it is about one.
    #[must_use]
    pub fn purchase(&self) -> Option<PurchaseId> {
        match self {
            Self::OrderCreated { purchase, .. }
            | Self::OrderCancelled { purchase, .. }
            | Self::OrderReinstated { purchase, .. }
            | Self::ReservationRejected { purchase, .. }
            | Self::OrderPaid { purchase, .. }
            | Self::OrderRefunded { purchase, .. } => Some(*purchase),
            Self::StockAdjusted { .. } => None,
        }
    }
}

impl Event {
    /// An order was created.
    #[must_use]
    pub fn order_created(purchase: PurchaseId, user: UserId, lines: Vec<Line>, at: Timestamp) -> Self {
        let id = purchase.event(IdKind::EventOrderCreated);
        Self { id, at, fact: Fact::OrderCreated { purchase, user, lines } }
    }

    /// An order was cancelled.
    #[must_use]
    pub fn order_cancelled(purchase: PurchaseId, user: UserId, lines: Vec<Line>, at: Timestamp) -> Self {
        let id = purchase.event(IdKind::EventOrderCancelled);
        Self { id, at, fact: Fact::OrderCancelled { purchase, user, lines } }
    }

    /// Money was taken.
    #[must_use]
    pub fn order_paid(purchase: PurchaseId, user: UserId, at: Timestamp) -> Self {
        let id = purchase.event(IdKind::EventOrderPaid);
        Self { id, at, fact: Fact::OrderPaid { purchase, user } }
    }

    /// All money went back.
    #[must_use]
    pub fn order_refunded(purchase: PurchaseId, user: UserId, at: Timestamp) -> Self {
        let id = purchase.event(IdKind::EventOrderRefunded);
        Self { id, at, fact: Fact::OrderRefunded { purchase, user } }
    }

    /// A cancelled order lives again.
    #[must_use]
    pub fn order_reinstated(purchase: PurchaseId, user: UserId, lines: Vec<Line>, at: Timestamp) -> Self {
        let id = purchase.event(IdKind::EventOrderReinstated);
        Self { id, at, fact: Fact::OrderReinstated { purchase, user, lines } }
    }

    /// A reservation was refused.
    #[must_use]
    pub fn rejected(purchase: PurchaseId, user: UserId, reason: Reason, at: Timestamp) -> Self {
        let id = purchase.event(IdKind::EventReservationRejected);
        Self { id, at, fact: Fact::ReservationRejected { purchase, user, reason } }
    }
}
