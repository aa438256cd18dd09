//! Workers: each is one function that takes one step — claim, act, settle — and says when to come back.
//!
//! Invariants: a step may be cut off anywhere and taken again by anybody; it begins with a claim of durable rows and
//! ends with settling them. No runtime in here: a simulator drives the same steps. Read next: [`consumer`].

pub mod compensator;
pub mod consumer;
pub mod deadline;
pub mod expiry;
pub mod projector;
pub mod relay;
pub mod sender;
pub mod watch;

use onceward_domain::error::Error;
use onceward_domain::time::{Millis, Timestamp};
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::runtime::Signals;

/// When a worker should step again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once: there was something to do.
    Again,
    /// When woken, or after this long; `None` where nothing is due at all.
    Wait(Option<Millis>),
}

/// The workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Worker {
    /// Sends reservations' messages (FS-05).
    Sender,
    /// Turns messages into orders (FS-06).
    Consumer,
    /// Relays events from the outbox (FS-11).
    Relay,
    /// Projects events to the gate (FS-13).
    Projector,
    /// Gives rejected units back (FS-12).
    Compensator,
    /// Rejects reservations past their business deadline (FS-15).
    Deadline,
    /// Cancels unpaid orders (OT-04).
    Expiry,
    /// Keeps gauges and watches invariants.
    Watch,
}

impl Worker {
    /// Every worker.
    pub const ALL: [Self; 8] = [
        Self::Sender,
        Self::Consumer,
        Self::Relay,
        Self::Projector,
        Self::Compensator,
        Self::Deadline,
        Self::Expiry,
        Self::Watch,
    ];

    /// The worker's name in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Consumer => "consumer",
            Self::Relay => "relay",
            Self::Projector => "projector",
            Self::Compensator => "compensator",
            Self::Deadline => "deadline",
            Self::Expiry => "expiry",
            Self::Watch => "watch",
        }
    }

    /// Takes one step.
    ///
    /// # Errors
    /// The ports'; the step may be taken again.
    pub async fn step(self, engine: &Engine) -> Result<Next, Error> {
        match self {
            Self::Sender => sender::step(engine).await,
            Self::Consumer => consumer::step(engine).await,
            Self::Relay => relay::step(engine).await,
            Self::Projector => projector::step(engine).await,
            Self::Compensator => compensator::step(engine).await,
            Self::Deadline => deadline::step(engine).await,
            Self::Expiry => expiry::step(engine).await,
            Self::Watch => watch::step(engine).await,
        }
    }

    pub(crate) fn signal(self, signals: &Signals) -> Option<&Notify> {
        match self {
            Self::Sender => Some(&signals.send),
            Self::Consumer => Some(&signals.consume),
            Self::Relay => Some(&signals.relay),
            Self::Projector => Some(&signals.project),
            Self::Compensator => Some(&signals.compensate),
            Self::Expiry => Some(&signals.expire),
            Self::Deadline | Self::Watch => None,
        }
    }
}

/// Turns a due-time into a wait by the store's own clock (DR-06).
pub(crate) async fn wait_until(engine: &Engine, due: Option<Timestamp>) -> Result<Next, Error> {
    let Some(due) = due else { return Ok(Next::Wait(None)) };
    let now = engine.store().now().await?;
    Ok(Next::Wait(Some(due.since(now))))
}
