//! The outbox relay (FS-11): events leave in the order in which they were decided.
//!
//! Invariants: entries are claimed strictly from the head, so while one waits nothing behind it overtakes; an entry is
//! removed only by the relay that still holds it; an unknown send is sent again with the same event ids; when tries are
//! used up the entry becomes a dead letter, shown and replayed by a person.

use onceward_domain::decide::queue::exhaust;
use onceward_domain::due::{Charge, Claimed, DueChange, Lane, Sequence};
use onceward_domain::error::Error;
use onceward_domain::ports::bus::{Message, Published, Topic};
use onceward_domain::retry::After;

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
    let outcomes = match engine.bus().publish(Topic::Events, messages).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::warn!(target: "onceward", event = "outbox.send_failed", error = ?error);
            Vec::new()
        }
    };
    let endings = end_all(engine, claimed, &entries, &outcomes);
    settle(engine.store(), "outbox.settle", endings).await?;
    engine.signals().project.notify_one();
    Ok(Next::Again)
}

/// From the first entry that was not wholly acknowledged, everything is sent again: order is kept.
fn end_all(
    engine: &Engine,
    claimed: Vec<Claimed>,
    entries: &[Result<Vec<Message>, Error>],
    outcomes: &[Published],
) -> Vec<Ending> {
    let mut outcomes = outcomes.iter();
    let mut is_broken = false;
    let mut endings = Vec::with_capacity(claimed.len());
    for (entry, messages) in claimed.into_iter().zip(entries) {
        observe::claimed(entry.held.lane.as_str(), entry.attempts);
        let Ok(messages) = messages else {
            endings.push(give_up(entry));
            continue;
        };
        let acked = outcomes.by_ref().take(messages.len()).filter(|one| **one == Published::Acked).count();
        is_broken |= acked != messages.len();
        let after = engine.settings().retry().after(entry.attempts, entry.held.seed());
        endings.push(match after {
            After::Again(_) | After::Exhausted if !is_broken => {
                observe::outbox_sent("sent", 1);
                Ending::at(move |_| DueChange::Complete(entry.held.clone()))
            }
            After::Again(wait) => {
                observe::outbox_sent("unknown", 1);
                Ending::at(move |now| {
                    let (held, due_at) = (entry.held.clone(), now.plus(wait));
                    DueChange::Retry { held, due_at, body: None, charge: Charge::Keep }
                })
            }
            After::Exhausted => give_up(entry),
        });
    }
    endings
}

fn give_up(entry: Claimed) -> Ending {
    observe::outbox_sent("manual", 1);
    Ending::with(Vec::new(), move |facts, changes| exhaust(facts, changes, &entry.held))
}
