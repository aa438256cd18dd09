//! Payment attempts, refunds, what providers say of them, and cases for people.
//!
//! Invariants: an attempt and a refund are durable before any provider hears of them, under an id that never changes
//! (C55); what a provider says — by callback or when asked — is one [`Word`], heard by one rule. Read next:
//! [`crate::decide::pay`].

use std::sync::Arc;

use crate::guard::Guard;
use crate::id::{IdKind, PaymentId, PurchaseId, RefundId};
use crate::machine::payment::Payment as PaymentStatus;
use crate::machine::refund::Refund as RefundStatus;
use crate::money::Money;
use crate::time::Timestamp;

/// A payment attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Its id, here and at the provider.
    pub id: PaymentId,
    /// For which order.
    pub purchase: PurchaseId,
    /// At which provider.
    pub provider: Arc<str>,
    /// How much.
    pub amount: Money,
    /// State.
    pub status: PaymentStatus,
    /// The provider's own transaction id, once it named one; unique with the provider.
    pub transaction: Option<Arc<str>>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

impl Payment {
    /// Whether the provider may still take money without having said the last word.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, PaymentStatus::Pending | PaymentStatus::Unknown)
    }
}

/// Why money goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefundCause {
    /// Somebody asked.
    Requested,
    /// Money came for a cancelled order (OT-07).
    LatePayment,
    /// Money came twice.
    DoublePayment,
}

impl RefundCause {
    /// Every cause; the position is the code that stores keep.
    pub const ALL: [Self; 3] = [Self::Requested, Self::LatePayment, Self::DoublePayment];

    /// The cause's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::LatePayment => "late_payment",
            Self::DoublePayment => "double_payment",
        }
    }
}

/// A refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// Its id, here and at the provider.
    pub id: RefundId,
    /// Of which order.
    pub purchase: PurchaseId,
    /// Of which attempt's money.
    pub payment: PaymentId,
    /// How much.
    pub amount: Money,
    /// State.
    pub status: RefundStatus,
    /// Why.
    pub cause: RefundCause,
    /// What the asker said.
    pub reason: Arc<str>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

impl Refund {
    /// Whether its amount counts against what can be refunded: it went back, or may still do.
    #[must_use]
    pub fn counts(&self) -> bool {
        Guard::FailedRefundFreesItsAmount.holds(self.status != RefundStatus::Failed)
    }

    /// Whether the provider has not said the last word.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, RefundStatus::Pending | RefundStatus::Unknown)
    }
}

/// The refund that gives an unwanted payment back: one per payment, whoever finds it, however often.
#[must_use]
pub fn refund_of_unwanted(payment: PaymentId) -> RefundId {
    let base = PurchaseId::of(payment.0, IdKind::Payment).expect("a payment's id has the payment's kind");
    RefundId(base.with_kind(IdKind::Refund))
}

/// What a provider says of a payment or refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Money was taken.
    Succeeded {
        /// Which attempt.
        payment: PaymentId,
        /// The provider's transaction id.
        transaction: Arc<str>,
        /// What was really taken.
        amount: Money,
    },
    /// The attempt was declined.
    Failed {
        /// Which attempt.
        payment: PaymentId,
    },
    /// The attempt is closed without money.
    Closed {
        /// Which attempt.
        payment: PaymentId,
    },
    /// The attempt is under way; nothing is decided (C40).
    Processing {
        /// Which attempt.
        payment: PaymentId,
    },
    /// The provider did not answer about an attempt.
    Silent {
        /// Which attempt.
        payment: PaymentId,
    },
    /// Money went back.
    Refunded {
        /// Which refund.
        refund: RefundId,
    },
    /// The refund was refused, or taken back later.
    RefundFailed {
        /// Which refund.
        refund: RefundId,
    },
    /// The provider did not answer about a refund.
    RefundSilent {
        /// Which refund.
        refund: RefundId,
    },
}

/// What a provider says of an off-session charge, whether it was asked for or asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChargeWord {
    /// Money was taken.
    Taken {
        /// The provider's transaction id.
        transaction: Arc<str>,
        /// What was really taken.
        amount: Money,
    },
    /// It was refused for good: under this id no money will ever be taken.
    Declined,
    /// The provider never heard of it, so the same id may be sent; it may still be on its way.
    Unheard,
}

/// A case for a person (RC-03): found once, kept until it is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What kind.
    pub kind: CaseKind,
    /// About which object, as text; with the kind it is unique.
    pub subject: Arc<str>,
    /// What was seen.
    pub detail: Arc<str>,
    /// When.
    pub at: Timestamp,
}

/// Kinds of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaseKind {
    /// The provider took another amount or currency than the order's.
    AmountMismatch,
    /// Money came for a cancelled order and the activity wants a person to decide.
    LatePayment,
    /// A refund that nobody asked a person about was refused by the provider.
    RefundFailed,
    /// Money came for an order that a person holds.
    PaymentWhileFrozen,
    /// One provider transaction was claimed for two payments.
    TransactionReused,
    /// Two provider transactions were claimed for one payment.
    SecondTransaction,
    /// Two callbacks came under one event id with different bodies.
    EventReused,
    /// A statement moves money of which our book knows nothing.
    StatementUnknown,
}

impl CaseKind {
    /// Every kind; the position is the code that stores keep.
    pub const ALL: [Self; 8] = [
        Self::AmountMismatch,
        Self::LatePayment,
        Self::RefundFailed,
        Self::PaymentWhileFrozen,
        Self::TransactionReused,
        Self::SecondTransaction,
        Self::EventReused,
        Self::StatementUnknown,
    ];

    /// The kind's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AmountMismatch => "AMOUNT_MISMATCH",
            Self::LatePayment => "LATE_PAYMENT",
            Self::RefundFailed => "REFUND_FAILED",
            Self::PaymentWhileFrozen => "PAYMENT_WHILE_FROZEN",
            Self::TransactionReused => "TRANSACTION_REUSED",
            Self::SecondTransaction => "SECOND_TRANSACTION",
            Self::EventReused => "EVENT_REUSED",
            Self::StatementUnknown => "STATEMENT_UNKNOWN",
        }
    }
}

/// A verified callback, as the inbox keeps it before it is processed (OT-08).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// From which provider.
    pub provider: Arc<str>,
    /// The provider's id of the event; with the provider it is unique.
    pub event: Arc<str>,
    /// SHA-256 of the raw body.
    pub payload_hash: [u8; 32],
    /// The raw body.
    pub payload: Vec<u8>,
    /// When it came.
    pub received_at: Timestamp,
}
