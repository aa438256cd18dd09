//! Workers: each is one function that takes one step — claim, act, settle — and says when to come back.
//!
//! Invariants: a step may be cut off anywhere and taken again by anybody; it begins with a claim of durable rows and
//! ends with settling them. No runtime in here: a simulator drives the same steps. Read next: [`consumer`].

pub mod announcer;
pub mod asker;
pub mod compensator;
pub mod consumer;
pub mod deadline;
pub mod expiry;
pub mod forwarder;
pub mod governor;
pub mod herald;
pub mod projector;
pub mod refunder;
pub mod relay;
pub mod retention;
pub mod sender;
pub mod settler;
pub(crate) mod strays;
pub mod sweep;
pub mod teller;
pub mod watch;

use onceward_domain::due::{ClaimRequest, Claimed, Lane, Sequence};
use onceward_domain::error::Error;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::Need;
use onceward_domain::ports::bus::Delivery;
use onceward_domain::time::{Millis, Timestamp};
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::pauses;
use crate::runtime::Signals;
use crate::store_queue::claim_within;
use crate::workers::asker::Round;

/// When a worker should step again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once: there was something to do.
    Again,
    /// When woken, or after this long; `None` where nothing is due at all.
    Wait(Option<Millis>),
}

impl Next {
    /// The same, or after this long where that is sooner.
    fn or_sooner(self, wait: Option<Millis>) -> Self {
        match self {
            Self::Again => Self::Again,
            Self::Wait(own) => Self::Wait(own.into_iter().chain(wait).min()),
        }
    }
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
    /// Brings over what was left on another bus (FS-11).
    Forwarder,
    /// Projects events to the gate (FS-13).
    Projector,
    /// Gives rejected units back (FS-12).
    Compensator,
    /// Rejects reservations past their business deadline (FS-15).
    Deadline,
    /// Cancels unpaid orders whose time is said to be up (OT-04).
    Expiry,
    /// Finds due orders that the deadline trigger lost (OT-10).
    Sweep,
    /// Tells providers of payment attempts (OT-03).
    Announcer,
    /// Hears callbacks (OT-08).
    Teller,
    /// Asks providers before a cancel is final (OT-05).
    Canceller,
    /// Asks providers once more after it (OT-07).
    Confirmer,
    /// Has money given back (OT-09).
    Refunder,
    /// Sends notices (LQ-05).
    Herald,
    /// Settles group orders (GS-01).
    Settler,
    /// Forgets records that nobody needs any more (design.md §7).
    Retention,
    /// Looks behind the gate (FS-16, FS-17).
    Governor,
    /// Keeps gauges and watches invariants.
    Watch,
}

impl Worker {
    /// Every worker.
    pub const ALL: [Self; 19] = [
        Self::Sender,
        Self::Consumer,
        Self::Relay,
        Self::Forwarder,
        Self::Projector,
        Self::Compensator,
        Self::Deadline,
        Self::Expiry,
        Self::Sweep,
        Self::Announcer,
        Self::Teller,
        Self::Canceller,
        Self::Confirmer,
        Self::Refunder,
        Self::Herald,
        Self::Settler,
        Self::Retention,
        Self::Governor,
        Self::Watch,
    ];

    /// The worker's name in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Consumer => "consumer",
            Self::Relay => "relay",
            Self::Forwarder => "forwarder",
            Self::Projector => "projector",
            Self::Compensator => "compensator",
            Self::Deadline => "deadline",
            Self::Expiry => "expiry",
            Self::Sweep => "sweep",
            Self::Announcer => "announcer",
            Self::Teller => "teller",
            Self::Canceller => "canceller",
            Self::Confirmer => "confirmer",
            Self::Refunder => "refunder",
            Self::Herald => "herald",
            Self::Settler => "settler",
            Self::Retention => "retention",
            Self::Governor => "governor",
            Self::Watch => "watch",
        }
    }

    /// Takes one step.
    ///
    /// # Errors
    /// The ports'; the step may be taken again.
    pub async fn step(self, engine: &Engine) -> Result<Next, Error> {
        if pauses::hold(engine, self).await? {
            return Ok(Next::Wait(None));
        }
        match self {
            Self::Sender => sender::step(engine).await,
            Self::Consumer => consumer::step(engine).await,
            Self::Relay => relay::step(engine).await,
            Self::Forwarder => forwarder::step(engine).await,
            Self::Projector => projector::step(engine).await,
            Self::Compensator => compensator::step(engine).await,
            Self::Deadline => deadline::step(engine).await,
            Self::Expiry => expiry::step(engine).await,
            Self::Sweep => sweep::step(engine).await,
            Self::Announcer => announcer::step(engine).await,
            Self::Teller => teller::step(engine).await,
            Self::Canceller => asker::step(engine, Round::Cancellation).await,
            Self::Confirmer => asker::step(engine, Round::Confirmation).await,
            Self::Refunder => refunder::step(engine).await,
            Self::Herald => herald::step(engine).await,
            Self::Settler => settler::step(engine).await,
            Self::Retention => retention::step(engine).await,
            Self::Governor => governor::step(engine).await,
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
            Self::Announcer => Some(&signals.announce),
            Self::Teller => Some(&signals.callback),
            Self::Canceller => Some(&signals.cancel),
            Self::Confirmer => Some(&signals.confirm),
            Self::Refunder => Some(&signals.refund),
            Self::Herald => Some(&signals.notify),
            Self::Settler => Some(&signals.settle),
            Self::Forwarder
            | Self::Deadline
            | Self::Sweep
            | Self::Retention
            | Self::Governor
            | Self::Watch => None,
        }
    }
}

/// Claims what is due of a lane whose work is given up when its tries are used up: what leases have used up is exhausted on
/// the way.
pub(crate) async fn claim_limited(
    engine: &Engine,
    lane: &'static str,
    sequence: Sequence,
) -> Result<Vec<Claimed>, Error> {
    let settings = engine.settings();
    let (limit, lease) = (settings.claim_batch, settings.lease);
    let request = ClaimRequest { lane: Lane::new(lane), limit, lease, sequence };
    claim_within(engine.store(), request, settings.retry()).await
}

/// The same for work that waits for a payment provider. Whoever claims it asks about all of it at once, so that one
/// silence costs as long as many.
pub(crate) async fn claim_for_provider(engine: &Engine, lane: &'static str) -> Result<Vec<Claimed>, Error> {
    claim_under(engine, lane, engine.settings().provider_lease).await
}

/// How long a claim waits after it failed.
pub(crate) fn wait_of(engine: &Engine, entry: &Claimed) -> Millis {
    engine.settings().retry().wait(entry.attempts, entry.held.seed())
}

/// How long a delivery waits after it failed.
pub(crate) fn wait_of_delivery(engine: &Engine, delivery: &Delivery) -> Millis {
    engine.settings().retry().wait(delivery.attempts, delivery.receipt.token.cast_unsigned())
}

async fn claim_under(engine: &Engine, lane: &'static str, lease: Millis) -> Result<Vec<Claimed>, Error> {
    let limit = engine.settings().claim_batch;
    let request = ClaimRequest { lane: Lane::new(lane), limit, lease, sequence: Sequence::ByDue };
    engine.store().claim_due(request).await
}

/// What a decision about reservations needs, be it for their orders or for their deadlines.
pub(crate) fn need_of_messages<'a>(messages: impl Iterator<Item = &'a OrderCreateRequested>) -> Need {
    let mut need = Need::default();
    for message in messages {
        if !need.skus.contains(&message.key) {
            need.skus.push(message.key.clone());
        }
        need.purchases.push(message.purchase);
        need.buyers.push((message.key.clone(), message.user.clone()));
    }
    need
}

/// Turns a due-time into a wait by the store's own clock (DR-06).
pub(crate) async fn wait_until(engine: &Engine, due: Option<Timestamp>) -> Result<Next, Error> {
    let Some(due) = due else { return Ok(Next::Wait(None)) };
    let now = engine.store().now().await?;
    Ok(Next::Wait(Some(due.since(now))))
}
