//! Pauses of work that lies outside of the store (LQ-06): a gate's batches, a broker's messages.
//!
//! A lane of the store knows by itself that it is paused. Where gate or bus live elsewhere, an operator's pause is still a row
//! of the store, so that every node obeys, and the worker asks here before it takes anything. Invariants: what this process
//! has paused or resumed holds at once; of other nodes it is heard within [`AGE`]. Deliberately absent: what a pause means for
//! work that is out already; it goes on.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::ports::bus::Topic;

use crate::engine::Engine;
use crate::store_bus::lane_of;
use crate::workers::Worker;

/// How old what is known of pauses may be. It is asked of all lanes at once, so not with every step.
const AGE: Duration = Duration::from_secs(1);

/// When, and which lanes were paused then.
type Seen = (Instant, BTreeSet<Lane>);

/// What was known at some time.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    seen: Mutex<Option<Seen>>,
}

impl Pauses {
    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it asked anew.
    pub(crate) fn forget(&self) {
        *self.seen() = None;
    }

    fn known(&self, lane: &Lane) -> Option<bool> {
        let seen = self.seen();
        let (at, paused) = seen.as_ref()?;
        (at.elapsed() < AGE).then(|| paused.contains(lane))
    }
}

/// Whether an operator's pause keeps this worker from taking anything.
///
/// # Errors
/// The store's.
pub(crate) async fn hold(engine: &Engine, worker: Worker) -> Result<bool, Error> {
    let Some(lane) = lane_outside(engine, worker) else { return Ok(false) };
    if let Some(known) = engine.pauses().known(&lane) {
        return Ok(known);
    }
    let asked_at = Instant::now();
    let paused: BTreeSet<Lane> = engine.store().paused().await?.into_iter().collect();
    let is_paused = paused.contains(&lane);
    *engine.pauses().seen() = Some((asked_at, paused));
    Ok(is_paused)
}

/// The lane that stands for what a worker takes from outside of the store.
fn lane_outside(engine: &Engine, worker: Worker) -> Option<Lane> {
    let gate = |name: &str| (!engine.admission().lives_in_store()).then(|| Lane::new(name));
    // A bus in the store knows when something comes.
    let bus = |topic: Topic| (!engine.bus().capabilities().foresight).then(|| lane_of(topic));
    match worker {
        Worker::Sender => gate(Lane::SEND_DUE),
        Worker::Deadline => gate(Lane::DEADLINE),
        Worker::Consumer => bus(Topic::OrderCreate),
        Worker::Projector => bus(Topic::Events),
        Worker::Relay
        | Worker::Compensator
        | Worker::Expiry
        | Worker::Sweep
        | Worker::Announcer
        | Worker::Teller
        | Worker::Canceller
        | Worker::Confirmer
        | Worker::Refunder
        | Worker::Herald
        | Worker::Settler
        | Worker::Forwarder
        | Worker::Retention
        | Worker::Governor
        | Worker::Watch => None,
    }
}
