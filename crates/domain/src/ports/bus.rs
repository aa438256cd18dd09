//! The bus: at-least-once transport.
//!
//! Invariants: a message is redelivered until it is acknowledged; copies may come twice, late and in any order
//! unless the topic keeps order; the business id is ours, never the bus's. A publish that had no answer is
//! `Unknown` and is repeated with the same id (DR-02, DR-04).

use std::sync::Arc;

use crate::ports::Answer;
use crate::time::{Millis, Timestamp};

/// Where messages go, and who reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Requests to create orders; read by `order-consumer`; no order needed.
    OrderCreate,
    /// Decisions of the store; read by `projector`; order kept.
    Events,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 2] = [Self::OrderCreate, Self::Events];

    /// The topic's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OrderCreate => "onceward-order-create",
            Self::Events => "onceward-events",
        }
    }

    /// The consumer group that reads it.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::OrderCreate => "order-consumer",
            Self::Events => "projector",
        }
    }
}

/// A message on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Our stable id, as text.
    pub id: Arc<str>,
    /// What it is about; messages of one key keep their order where the topic does.
    pub key: Arc<str>,
    /// The payload.
    pub payload: Vec<u8>,
}

/// What is known about one publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Published {
    /// The bus has it.
    Acked,
    /// No answer: perhaps it has it.
    Unknown,
    /// It refused it.
    Rejected,
    /// It did not take it now, because it has too much to do: nothing is wrong with the message.
    Busy,
}

/// Names one delivery towards the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The bus's own name of the batch or message.
    pub carrier: Arc<str>,
    /// The lease of this delivery.
    pub token: i64,
    /// Position inside the carrier.
    pub index: u32,
}

/// One delivery of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// For settling it.
    pub receipt: Receipt,
    /// The message.
    pub message: Message,
    /// How many deliveries there were, this one counted.
    pub attempts: u32,
    /// When it was published.
    pub published_at: Timestamp,
}

/// How a delivery ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Done; not to come again.
    Ack(Receipt),
    /// To come again after this long.
    Retry(Receipt, Millis),
    /// The same, and the delivery does not count: it could not be tried. A bus that cannot take it back remembers it for as
    /// long as it lives.
    HandBack(Receipt, Millis),
    /// Set aside for a person.
    Dead(Receipt),
}

/// What an ordered topic keeps in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// All its messages: nothing overtakes what is under a lease.
    Topic,
    /// Messages of one key.
    Key,
}

/// In what a bus differs from others, declared so that nobody has to guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What the event topic keeps in order.
    pub order: Order,
    /// Whether `next_delivery` knows. Where it does not, `consume` itself waits a moment for something to come, and
    /// `next_delivery` says that asking again at once is right.
    pub foresight: bool,
    /// The shortest lease; a shorter one is lengthened to it.
    pub shortest_lease: Millis,
    /// How much later than its time a redelivery may come.
    pub lateness: Millis,
}

/// The bus.
pub trait Bus: Send + Sync {
    /// In what it differs from others.
    fn capabilities(&self) -> Capabilities;

    /// Publishes; one outcome per message, in order.
    fn publish(&self, topic: Topic, messages: Vec<Message>) -> Answer<'_, Vec<Published>>;

    /// Takes up to about `limit` messages under a lease; those not settled by its end come again.
    fn consume(&self, topic: Topic, limit: u32, lease: Millis) -> Answer<'_, Vec<Delivery>>;

    /// Settles deliveries; one whose lease was lost is skipped (its message comes again, harmlessly).
    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()>;

    /// Earliest time at which `consume` would find something; see [`Capabilities::foresight`].
    fn next_delivery(&self, topic: Topic) -> Answer<'_, Option<Timestamp>>;
}
