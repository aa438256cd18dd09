//! Deadline triggers: what tells the engine that an order's time is up (OT-10).
//!
//! Invariants: a trigger only tells. Whether an order ends is decided on its own row, so a signal may come twice, early,
//! late or never: early ones are given back for later, and lost ones are found by the sweep over the orders themselves
//! ([`super::store::Store::expiries`]). A signal is told again until it is settled. Each trigger judges its due-times by its
//! own clock and answers in waits, so that nobody compares two clocks (DR-06).
//!
//! Deliberately absent: what happens to the order. Read next: [`crate::decide::cancel::expire`].

use std::str::FromStr;

use crate::due::{DueChange, Member, Token};
use crate::id::PurchaseId;
use crate::ports::Answer;
use crate::time::{Millis, Timestamp};

/// The five ways to be told (OT-10), by the names of the setting `deadline.trigger`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TriggerKind {
    /// A sorted set in Redis.
    Zset,
    /// The store's own due work.
    Store,
    /// A delayed message of the broker.
    Broker,
    /// Redis' events of expired keys; they get lost.
    Keyspace,
    /// A delayed queue with acknowledgement.
    Queue,
}

impl TriggerKind {
    /// Every way.
    pub const ALL: [Self; 5] = [Self::Zset, Self::Store, Self::Broker, Self::Keyspace, Self::Queue];

    /// The name in the settings.
    ///
    /// ```
    /// use onceward_domain::ports::deadline::TriggerKind;
    /// assert!(TriggerKind::ALL.iter().all(|kind| kind.name().parse() == Ok(*kind)));
    /// assert!("cron".parse::<TriggerKind>().is_err());
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zset => "zset",
            Self::Store => "store",
            Self::Broker => "broker",
            Self::Keyspace => "keyspace",
            Self::Queue => "queue",
        }
    }
}

impl FromStr for TriggerKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("`{text}` is not one of zset, store, broker, keyspace, queue"))
    }
}

/// An order, and when it is to be cancelled unless something happens to it first: `expires_at` + grace (OT-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry {
    /// When, by the store's clock.
    pub due_at: Timestamp,
    /// Whose order.
    pub purchase: PurchaseId,
}

/// Names one telling towards the trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The trigger's own name of what it told.
    pub member: Member,
    /// The fencing token of this telling; no other one has it.
    pub token: Token,
}

/// "Their time is up", says a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// For settling it.
    pub receipt: Receipt,
    /// How often it was told, this time counted.
    pub attempts: u32,
    /// Orders to look at; of some of them the time may still lie ahead.
    pub orders: Vec<PurchaseId>,
}

/// How a signal ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalEnd {
    /// It was acted upon: not to be told again.
    Ack(Receipt),
    /// Of these orders the time still lies ahead: to be told again after this long.
    Again {
        /// The telling.
        receipt: Receipt,
        /// Which orders.
        orders: Vec<PurchaseId>,
        /// How long to wait, by the trigger's own clock.
        wait: Millis,
    },
}

/// The topic in which a broker's trigger keeps deadlines, and the group that reads it.
pub const TOPIC: &str = "onceward-due";
/// See [`TOPIC`].
pub const GROUP: &str = "order-expiry";

/// In what a trigger differs from others, declared so that nobody has to guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether `next_in` knows. Where it does not, `take` itself waits a moment for something to come, and `next_in` says
    /// that asking again at once is right.
    pub foresight: bool,
}

/// What tells that an order's time is up.
pub trait DeadlineTrigger: Send + Sync {
    /// Which of the five ways it is.
    fn kind(&self) -> TriggerKind;

    /// In what it differs from others.
    fn capabilities(&self) -> Capabilities {
        Capabilities { foresight: true }
    }

    /// Due work that belongs into the transaction that makes the orders, for a trigger that lives in the store; `member`
    /// names it. Nothing for all others.
    fn within(&self, member: &Member, expiries: &[Expiry]) -> Vec<DueChange>;

    /// Hears of orders after their transaction is durable, for a trigger that lives elsewhere. What it forgets, the sweep
    /// finds; a repeat is harmless.
    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()>;

    /// Takes up to `limit` signals whose time has come, under a lease; those not settled by its end are told again.
    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>>;

    /// Settles signals; one whose lease was lost is skipped. Answers how many were still held.
    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32>;

    /// How long until [`Self::take`] would find something; `None` where nothing is known to come. See
    /// [`Capabilities::foresight`].
    fn next_in(&self) -> Answer<'_, Option<Millis>>;
}
