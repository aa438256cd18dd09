//! The one transaction boundary and the one retry loop.
//!
//! `execute` hands a decision to the store, which loads, decides and applies in one transaction; a lost guard is
//! decided again on fresh rows, at most [`CONFLICT_TRIES`] times. Invariants: events leave the decision as one outbox
//! entry of the same transaction, and its notices with the due work that sends them; the deadline trigger hears of new orders
//! in it, or after it; an unknown outcome is handed to the caller, who reads back by id — it is never retried here.
//! Deliberately absent: waiting. Back-off belongs to whoever claimed the work.

use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{DueChange, Lane, Member};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::Answer;
use onceward_domain::ports::deadline::Expiry;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::wire;

/// How often a lost guard is decided again; beyond it the caller hears [`Code::GuardLost`].
pub const CONFLICT_TRIES: u32 = 8;

/// Runs one decision in one transaction and gives its outcome back.
///
/// # Errors
/// The decision's own error, or the store's. After an `UnknownOutcome` the effect may have landed.
pub async fn execute<O, F>(engine: &Engine, name: &'static str, need: Need, decide: F) -> Result<O, Error>
where
    F: Fn(&mut Facts) -> Result<(ChangeSet, O), Error> + Send + Sync + 'static,
    O: Send + 'static,
{
    let member = engine.ids().member();
    let trigger = engine.deadline_trigger();
    let sealed = move |facts: &mut Facts| {
        let (mut changes, outcome) = decide(facts)?;
        seal(facts, &mut changes, &member);
        let expiries = std::mem::take(&mut changes.expiries);
        if !expiries.is_empty() {
            changes.due.extend(trigger.within(&member, &expiries));
        }
        Ok((changes, (outcome, expiries)))
    };
    let (outcome, expiries) = transact(engine.store(), name, need, sealed).await?;
    if !expiries.is_empty() {
        offer(engine, expiries).await;
    }
    Ok(outcome)
}

/// Tells the trigger of orders that are durable. What it does not hear, or forgets, the sweep finds (OT-10).
async fn offer(engine: &Engine, expiries: Vec<Expiry>) {
    if let Err(error) = engine.deadline_trigger().offer(expiries).await {
        tracing::warn!(target: "onceward", event = "deadline.offer_failed", error = ?error);
    }
    engine.signals().expire.notify_one();
}

/// The same on a bare store, for decisions that tell nobody.
///
/// # Errors
/// As [`execute`].
pub async fn transact<O, F>(store: &dyn Store, name: &'static str, need: Need, decide: F) -> Result<O, Error>
where
    F: Fn(&mut Facts) -> Result<(ChangeSet, O), Error> + Send + Sync + 'static,
    O: Send + 'static,
{
    let slot: Arc<Mutex<Option<O>>> = Arc::new(Mutex::new(None));
    let filled = slot.clone();
    let work = Work {
        name,
        need,
        decide: Arc::new(move |facts| {
            let (mut changes, outcome) = decide(facts)?;
            announce(facts, &mut changes);
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            Ok(changes)
        }),
    };
    let mut tries = 0;
    loop {
        tries += 1;
        match store.transact(work.clone()).await {
            Ok(()) => {
                let outcome = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                return outcome.ok_or_else(|| {
                    Error::new(Code::ConstraintViolated, format!("{name}: the store never ran the decision"))
                });
            }
            Err(error) if error.class() == Class::Conflict && tries < CONFLICT_TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

type Write = Arc<dyn Fn(&mut Facts, &mut ChangeSet) + Send + Sync>;

/// One claim's end, decided when the store's time is known.
#[derive(Clone)]
pub struct Ending {
    due: Vec<(Lane, Member)>,
    write: Write,
}

impl Ending {
    /// An end that is one change and depends on nothing but the time.
    pub fn at(end: impl Fn(Timestamp) -> DueChange + Send + Sync + 'static) -> Self {
        Self::with(Vec::new(), move |facts, changes| changes.due.push(end(facts.now)))
    }

    /// An end that looks at these members of due work.
    pub fn with(
        due: Vec<(Lane, Member)>,
        write: impl Fn(&mut Facts, &mut ChangeSet) + Send + Sync + 'static,
    ) -> Self {
        Self { due, write: Arc::new(write) }
    }
}

/// Ends claims together; where one of them has lost its lease, one by one, so that it does not undo the others.
/// Answers how many ended. A lost lease or a lost answer is no error: the work comes again and is recognised.
///
/// # Errors
/// The store's, where it is known that nothing happened.
pub async fn settle(store: &dyn Store, name: &'static str, endings: Vec<Ending>) -> Result<u32, Error> {
    let together = endings.clone();
    let count = u32::try_from(endings.len()).expect("claims are few");
    let due = endings.iter().flat_map(|ending| ending.due.clone()).collect();
    let all = move |facts: &mut Facts| {
        let mut changes = ChangeSet::default();
        together.iter().for_each(|ending| (ending.write)(facts, &mut changes));
        Ok((changes, ()))
    };
    match transact(store, name, Need { due, ..Need::default() }, all).await {
        Ok(()) => return Ok(count),
        Err(error) if error.class() == Class::UnknownOutcome => return Ok(0),
        Err(error) if error.class() == Class::Conflict && count > 1 => {}
        Err(error) if error.class() == Class::Conflict => return Ok(0),
        Err(error) => return Err(error),
    }
    let mut ended = 0;
    for ending in endings {
        ended += Box::pin(settle(store, name, vec![ending])).await?;
    }
    Ok(ended)
}

/// Decides members of a batch together; where that fails for good, halves until the culprit stands alone. An answer for each.
pub(crate) async fn decide_apart<'a, T, O>(
    batch: Vec<T>,
    decide: impl Fn(Arc<[T]>) -> Answer<'a, Vec<O>> + Send + Sync,
) -> Vec<Result<O, Error>>
where
    T: Clone + Send + Sync,
    O: Send,
{
    let mut done: Vec<Result<O, Error>> = Vec::with_capacity(batch.len());
    if batch.is_empty() {
        return done;
    }
    // A stack of parts, first part on top; each split adds one, so it never holds more than log2(n) + 1.
    let mut parts: Vec<Arc<[T]>> = vec![Arc::from(batch)];
    while let Some(part) = parts.pop() {
        match decide(part.clone()).await {
            Ok(outcomes) => done.extend(outcomes.into_iter().map(Ok)),
            Err(error) if part.len() > 1 && may_be_one(&error) => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.push(Arc::from(second));
                parts.push(Arc::from(first));
            }
            Err(error) => done.extend(error.for_each(part.len())),
        }
    }
    done
}

/// Whether one member of a batch may be what made it fail: then the others are tried without it.
pub(crate) fn may_be_one(error: &Error) -> bool {
    matches!(error.class(), Class::Manual | Class::Conflict)
}

/// Has every new notice sent: a notice and the due work that sends it are one transaction (LQ-05).
fn announce(facts: &Facts, changes: &mut ChangeSet) {
    let puts = changes.new_notices.iter().map(|notice| DueChange::Put {
        lane: Lane::new(Lane::NOTICE),
        member: Arc::from(notice.id.to_string()),
        due_at: facts.now,
        body: notice.id.0.as_bytes().to_vec(),
    });
    changes.due.extend(puts);
}

/// Turns the decision's events into one outbox entry of the same transaction (FS-11).
fn seal(facts: &Facts, changes: &mut ChangeSet, member: &Member) {
    if changes.events.is_empty() {
        return;
    }
    let events = std::mem::take(&mut changes.events);
    changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::OUTBOX),
        member: member.clone(),
        due_at: facts.now,
        body: wire::encode_events(&events),
    });
}
