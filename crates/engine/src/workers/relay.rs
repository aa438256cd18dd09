//! The outbox relay (FS-11): events leave in the order in which they were decided.
//!
//! Invariants: entries are claimed strictly from the head, so while one waits nothing behind it overtakes; an entry is
//! removed only by the relay that still holds it; an unknown send is sent again with the same event ids. A bus that is away
//! uses up no tries ([`onceward_domain::decide::relay`]); an entry that a living bus does not take becomes a dead letter
//! when its tries are used up, shown and replayed by a person.

use onceward_domain::decide::queue::exhaust;
use onceward_domain::decide::relay::{Fate, Seen, judge};
use onceward_domain::due::{Charge, Claimed, DueChange, Lane, Sequence};
use onceward_domain::error::{Class, Error};
use onceward_domain::ports::bus::{Message, Published, Topic};
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::execute::{Ending, settle};
use crate::observe;
use crate::store_bus::head_due;
use crate::wire;
use crate::workers::{Next, claim_limited, wait_until};

/// Claims entries from the head, publishes their events, settles them.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let lane = Lane::new(Lane::OUTBOX);
    let claimed = claim_limited(engine, Lane::OUTBOX, Sequence::Strict).await?;
    if claimed.is_empty() {
        return wait_until(engine, head_due(engine.store(), lane).await?).await;
    }
    let entries: Vec<Result<Vec<Message>, Error>> =
        claimed.iter().map(|entry| wire::split_events(&entry.body)).collect();
    let messages: Vec<Message> = entries.iter().flatten().flatten().cloned().collect();
    let outcomes = publish(engine, messages).await;
    // When it was claimed, by the store's clock: to ask once more could fail, and what was sent would be sent again.
    let now = claimed[0].lease_until.minus(engine.settings().lease);
    let seen = see_all(&claimed, &entries, &outcomes, now);
    let fates = judge(&seen, engine.settings().retry());
    let endings = claimed.into_iter().zip(fates).map(|(entry, fate)| ending(entry, fate)).collect();
    settle(engine.store(), "outbox.settle", endings).await?;
    engine.signals().project.notify_one();
    Ok(Next::Again)
}

/// A bus that gives no answers at all has refused all of it where its error says that it was the request's fault, else it
/// is away.
async fn publish(engine: &Engine, messages: Vec<Message>) -> Vec<Published> {
    let count = messages.len();
    match engine.bus().publish(Topic::Events, messages).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::warn!(target: "onceward", event = "outbox.send_failed", error = ?error);
            let is_refusal = matches!(error.class(), Class::Rejected | Class::Manual);
            vec![if is_refusal { Published::Rejected } else { Published::Unknown }; count]
        }
    }
}

fn see_all(
    claimed: &[Claimed],
    entries: &[Result<Vec<Message>, Error>],
    outcomes: &[Published],
    now: Timestamp,
) -> Vec<Seen> {
    let mut rest = outcomes;
    let mut seen = Vec::with_capacity(claimed.len());
    for (entry, messages) in claimed.iter().zip(entries) {
        observe::claimed(entry.held.lane.as_str(), entry.attempts);
        let Ok(messages) = messages else {
            seen.push(Seen::Unreadable);
            continue;
        };
        let (own, others) = rest.split_at(messages.len().min(rest.len()));
        rest = others;
        let count = |wanted: Published| own.iter().filter(|one| **one == wanted).count();
        seen.push(Seen::Offered {
            acked: count(Published::Acked),
            rejected: count(Published::Rejected),
            // What the bus said nothing about is unknown too.
            unknown: messages.len()
                - [Published::Acked, Published::Rejected, Published::Busy].map(count).iter().sum::<usize>(),
            busy: count(Published::Busy),
            attempts: entry.attempts,
            seed: entry.held.seed(),
            age: now.since(entry.created_at),
        });
    }
    seen
}

fn ending(entry: Claimed, fate: Fate) -> Ending {
    let held = entry.held;
    let (wait, charge) = match fate {
        Fate::Sent => {
            observe::outbox_sent("sent", 1);
            return Ending::at(move |_| DueChange::Complete(held.clone()));
        }
        Fate::GivenUp => {
            observe::outbox_sent("manual", 1);
            return Ending::with(Vec::new(), move |facts, changes| exhaust(facts, changes, &held));
        }
        Fate::Charged(wait) => (wait, Charge::Keep),
        Fate::Kept(wait) => (wait, Charge::Refund),
    };
    observe::outbox_sent("unknown", 1);
    Ending::at(move |now| DueChange::Retry { held: held.clone(), due_at: now.plus(wait), body: None, charge })
}
