//! A bank that does as it is told: what people and tests use to play the provider's side.
//!
//! Invariants: it is somebody else's system, so its truth is its own and what it was told survives our crashes; an
//! answer is given only once the truth behind it is durable. Beside this port the same bank is an ordinary
//! [`super::provider::Provider`], which knows nothing of being played with. Deliberately absent: anything that a real
//! provider would not do to us sooner or later.

use std::sync::Arc;

use crate::id::{ChargeId, PaymentId, RefundId, UserId};
use crate::money::Money;
use crate::ports::Answer;
use crate::time::{Millis, Timestamp};

/// State of a payment in the bank's own book. It is the bank's machine, not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BankStatus {
    /// The buyer may pay.
    Open,
    /// Money was taken.
    Succeeded,
    /// The buyer's try was declined.
    Failed,
    /// It was closed without money.
    Closed,
}

impl BankStatus {
    /// The state's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Closed => "CLOSED",
        }
    }
}

/// A payment in the bank's own book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankPayment {
    /// Its id, which is ours.
    pub id: PaymentId,
    /// State.
    pub status: BankStatus,
    /// What was taken, or should be; nothing where it was closed before anybody announced it.
    pub amount: Option<Money>,
    /// What went back.
    pub refunded: Option<Money>,
    /// The bank's transaction id, once money was taken.
    pub transaction: Option<Arc<str>>,
}

/// What the buyer does at the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Pays.
    Succeed {
        /// Another amount than the announced one.
        amount: Option<Money>,
        /// The money moves although the payment failed or was closed.
        force: bool,
    },
    /// Is declined.
    Fail,
}

/// What becomes of the callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calling {
    /// It is sent.
    Send,
    /// It is lost.
    Drop,
    /// It is sent twice, at the same moment.
    Duplicate,
}

impl Calling {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Send, Self::Drop, Self::Duplicate];

    /// The way's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
        }
    }
}

/// One act of the play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Act {
    /// What the buyer does.
    pub deed: Deed,
    /// What becomes of the callback.
    pub calling: Calling,
    /// How long the callback waits.
    pub delay: Millis,
}

/// How the bank answers one kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mood {
    /// As it should.
    #[default]
    Ok,
    /// It says that it cannot, and did nothing.
    Error,
    /// It does nothing and says nothing.
    Timeout,
    /// It does it and says nothing.
    TimeoutAfterEffect,
    /// It refuses for good.
    Decline,
}

impl Mood {
    /// Every mood.
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::Error, Self::Timeout, Self::TimeoutAfterEffect, Self::Decline];
    /// The moods of calls that only ask, or close.
    pub const OF_QUESTIONS: [Self; 3] = [Self::Ok, Self::Error, Self::Timeout];

    /// The mood's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::TimeoutAfterEffect => "timeout_after_effect",
            Self::Decline => "decline",
        }
    }
}

/// The mood of every kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moods {
    /// Asking about a payment or a charge.
    pub query: Mood,
    /// Closing a payment.
    pub close: Mood,
    /// Charging without the buyer.
    pub charge: Mood,
    /// Giving money back.
    pub refund: Mood,
}

/// Moods to change; what is not named stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoodChange {
    /// Asking about a payment or a charge.
    pub query: Option<Mood>,
    /// Closing a payment.
    pub close: Option<Mood>,
    /// Charging without the buyer.
    pub charge: Option<Mood>,
    /// Giving money back.
    pub refund: Option<Mood>,
}

/// Which way money moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MoveKind {
    /// From the buyer.
    Payment,
    /// Back to the buyer.
    Refund,
    /// A refund that came back days later.
    RefundReturned,
    /// From a customer who was not there.
    Charge,
}

impl MoveKind {
    /// The kind's name in a statement.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Refund => "refund",
            Self::RefundReturned => "refund_returned",
            Self::Charge => "charge",
        }
    }
}

/// One line of the bank's statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementLine {
    /// When the money moved.
    pub at: Timestamp,
    /// Which way.
    pub kind: MoveKind,
    /// Of which payment; none for an off-session charge.
    pub payment: Option<PaymentId>,
    /// Of which refund, for refunds.
    pub refund: Option<RefundId>,
    /// Of which off-session charge.
    pub charge: Option<ChargeId>,
    /// The bank's transaction id of the payment or charge.
    pub transaction: Arc<str>,
    /// How much.
    pub amount: Money,
}

/// An off-session charge that was really taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerCharge {
    /// The key it was asked for under.
    pub charge: ChargeId,
    /// How much.
    pub amount: Money,
    /// When.
    pub at: Timestamp,
}

/// A bank that does as it is told.
pub trait Sandbox: Send + Sync {
    /// A payment as the bank knows it.
    fn payment(&self, id: PaymentId) -> Answer<'_, BankPayment>;

    /// Plays one act. [`crate::error::Code::Differs`] where the payment's state does not allow it.
    fn play(&self, id: PaymentId, act: Act) -> Answer<'_, BankPayment>;

    /// Changes moods and answers all of them.
    fn set_moods(&self, change: MoodChange) -> Answer<'_, Moods>;

    /// Every move of money from `from` on and before `to`, oldest first.
    fn statement(&self, from: Timestamp, to: Timestamp) -> Answer<'_, Vec<StatementLine>>;

    /// The off-session charges of a customer that were really taken, oldest first.
    fn charges(&self, customer: UserId) -> Answer<'_, Vec<CustomerCharge>>;
}
