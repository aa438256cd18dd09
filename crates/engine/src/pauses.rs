//! Pauses of work that lies outside of the store (LQ-06): a gate's batches, a broker's messages.
//!
//! A lane of the store knows by itself that it is paused. Where gate or bus live elsewhere, an operator's pause is still a row
//! of the store, so that every node obeys, and the worker asks here before it takes anything. Invariants: what this process
//! has paused or resumed holds at once; of other nodes it is heard within [`AGE`]; while the store is away the last answer holds,
//! so that its outage neither lifts a pause nor stops work that needs no store. Deliberately absent: what a pause means for work
//! that is out already; it goes on.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::ports::bus::Topic;

use crate::engine::Engine;
use crate::outage::is_outage;
use crate::store_bus::lane_of;
use crate::workers::Worker;

/// How old what is known of pauses may be. It is asked of all lanes at once, so not with every step.
const AGE: Duration = Duration::from_secs(1);

/// Which lanes were paused when.
#[derive(Debug)]
struct Seen {
    at: Instant,
    paused: BTreeSet<Lane>,
}

/// What was known at some time.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    seen: Mutex<Option<Seen>>,
}

impl Pauses {
    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process has paused the lane, or resumed it.
    pub(crate) fn learn(&self, lane: &Lane, is_paused: bool) {
        if let Some(seen) = self.seen().as_mut() {
            if is_paused {
                seen.paused.insert(lane.clone());
            } else {
                seen.paused.remove(lane);
            }
            seen.at = Instant::now();
        }
    }

    fn known(&self, lane: &Lane) -> Option<bool> {
        let seen = self.seen();
        let seen = seen.as_ref()?;
        (seen.at.elapsed() < AGE).then(|| seen.paused.contains(lane))
    }

    /// Takes what the store said to a question of this time, and says what that means for a lane.
    fn hear(&self, asked_at: Instant, said: Result<Vec<Lane>, Error>, lane: &Lane) -> Result<bool, Error> {
        let mut seen = self.seen();
        match said {
            // What this process has paused meanwhile is not in an answer to an older question.
            Ok(_) if seen.as_ref().is_some_and(|known| known.at > asked_at) => {}
            Ok(paused) => *seen = Some(Seen { at: asked_at, paused: paused.into_iter().collect() }),
            Err(error) => match seen.as_mut().filter(|_| is_outage(&error)) {
                Some(known) => {
                    tracing::warn!(target: "onceward", event = "pauses.not_heard", error = ?error);
                    // A store that is silent for long is not asked with every step.
                    known.at = Instant::now();
                }
                None => return Err(error),
            },
        }
        Ok(seen.as_ref().is_some_and(|known| known.paused.contains(lane)))
    }
}

/// Whether an operator's pause keeps this worker from taking anything.
///
/// # Errors
/// The store's, where it has never answered, or where it is not away.
pub(crate) async fn hold(engine: &Engine, worker: Worker) -> Result<bool, Error> {
    let Some(lane) = lane_outside(engine, worker) else { return Ok(false) };
    if let Some(known) = engine.pauses().known(&lane) {
        return Ok(known);
    }
    let asked_at = Instant::now();
    let said = engine.store().paused().await;
    engine.pauses().hear(asked_at, said, &lane)
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

#[cfg(test)]
mod tests {
    //! What was said last holds until something else is said.

    use onceward_domain::error::Code;

    use super::*;

    fn away() -> Result<Vec<Lane>, Error> {
        Err(Error::new(Code::Unavailable, "nobody is there"))
    }

    #[test]
    fn lq_06_while_the_store_is_away_what_it_said_last_of_pauses_holds() {
        let (pauses, begun) = (Pauses::default(), Instant::now());
        let (paused, other) = (Lane::new("paused"), Lane::new("other"));
        assert!(pauses.hear(begun, away(), &paused).is_err(), "nothing is known yet");
        assert!(pauses.hear(begun, Ok(vec![paused.clone()]), &paused).unwrap());
        for (lane, is_paused) in [(&paused, true), (&other, false)] {
            assert_eq!(pauses.hear(begun, away(), lane).unwrap(), is_paused);
            assert_eq!(pauses.known(lane), Some(is_paused), "it is not asked again at once");
        }
        let defect = Err(Error::new(Code::ConstraintViolated, "a defect"));
        assert!(pauses.hear(begun, defect, &paused).is_err());
        assert!(!pauses.hear(Instant::now(), Ok(Vec::new()), &paused).unwrap(), "it was resumed elsewhere");
    }

    #[test]
    fn lq_06_what_this_process_has_paused_is_not_undone_by_an_answer_from_before() {
        let (pauses, lane) = (Pauses::default(), Lane::new("lane"));
        assert!(!pauses.hear(Instant::now(), Ok(Vec::new()), &lane).unwrap());
        let asked_at = Instant::now();
        pauses.learn(&lane, true);
        assert!(pauses.hear(asked_at, Ok(Vec::new()), &lane).unwrap());
        pauses.learn(&lane, false);
        assert!(!pauses.hear(asked_at, away(), &lane).unwrap(), "nor does an outage bring it back");
    }
}
