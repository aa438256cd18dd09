//! The projector: brings the store's decisions to the gate (FS-13).
//!
//! Invariants: at-least-once and harmless to repeat, because the gate itself knows what it has applied; what cannot be read, or
//! meets a defect, becomes a dead letter, alone; a gate that is away uses up no tries. What comes too early, and what a part of the
//! gate does not take while others do, is put aside into the store and brought again from there, because on the bus it would hold up
//! what comes behind it (FS-19); what fails there holds up nothing on the bus; events may overtake each other, see
//! [`onceward_domain::decide::project`].

use std::collections::BTreeSet;

use onceward_domain::error::{Class, Error};
use onceward_domain::ports::admission::Projected;
use onceward_domain::ports::bus::{Bus, Delivery, Message, Settlement, Topic};
use onceward_domain::time::{Millis, Timestamp};

use crate::engine::Engine;
use crate::outage::is_outage;
use crate::wire;
use crate::workers::{Next, wait_of_delivery, wait_until};

/// Takes events, projects them, settles them.
///
/// # Errors
/// The ports'; what was not settled comes again.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    let outage = engine.outage(Topic::Events);
    outage.look(engine, |engine, refused| Box::pin(project_again(engine, refused))).await?;
    let aside = aside(engine).await;
    let limit = u32::try_from(settings.order_batch).unwrap_or(u32::MAX);
    let deliveries = engine.bus().consume(Topic::Events, limit, settings.lease).await?;
    if deliveries.is_empty() {
        let next = engine.bus().next_delivery(Topic::Events).await?;
        return Ok(wait_until(engine, next).await?.or_sooner(aside));
    }
    outage
        .decide_all(engine, Topic::Events, &deliveries, |engine, batch| Box::pin(handle(engine, batch)))
        .await?;
    Ok(Next::Again)
}

/// What became of a batch.
#[derive(Default)]
struct Heard<'a> {
    settlements: Vec<Settlement>,
    /// Those that their part of the gate did not take, because it was away.
    untaken: Vec<&'a Delivery>,
    /// Those that the gate cannot apply before what comes before them.
    early: Vec<&'a Delivery>,
    /// Whether the gate took any.
    is_any_taken: bool,
}

impl Heard<'_> {
    /// Makes sure that only a part of the gate is away: something was taken, or the rest answers.
    async fn is_of_a_part(&self, engine: &Engine) -> Result<(), Error> {
        if self.untaken.is_empty() || self.is_any_taken {
            return Ok(());
        }
        engine.admission().next_send().await.map(drop)
    }
}

/// Events that the gate did not take: that it takes some of them now shows more than that it answers, and changes nothing when they
/// come again.
async fn project_again(engine: &Engine, refused: &[Delivery]) -> Result<(), Error> {
    project(engine, refused).await?.is_of_a_part(engine).await
}

async fn handle(engine: &Engine, batch: &[Delivery]) -> Result<Vec<Settlement>, Error> {
    let mut heard = project(engine, batch).await?;
    heard.is_of_a_part(engine).await?;
    // Apart from each other, because what came too early pays for its tries.
    for some in [&heard.untaken, &heard.early].into_iter().filter(|some| !some.is_empty()) {
        let messages: Vec<Message> = some.iter().map(|delivery| delivery.message.clone()).collect();
        engine.shelf().put(Topic::Events, &messages, engine.settings().poll).await?;
        heard.settlements.extend(some.iter().map(|one| Settlement::Ack(one.receipt.clone())));
    }
    Ok(heard.settlements)
}

/// Brings what was put aside, and says in how long more of it is to be brought; a shelf that fails is looked at again later.
async fn aside(engine: &Engine) -> Option<Millis> {
    let due = async {
        let Some(due) = bring_again(engine).await? else { return Ok(None) };
        Ok::<_, Error>(Some(due.since(engine.store().now().await?)))
    };
    due.await.unwrap_or_else(|error| {
        tracing::warn!(target: "onceward", event = "projector.shelf_failed", ?error);
        Some(engine.settings().poll)
    })
}

/// Brings what was put aside and is due, all of it at once: a part of the gate that hangs is waited for once. Answers when more
/// of it is due.
async fn bring_again(engine: &Engine) -> Result<Option<Timestamp>, Error> {
    let (settings, shelf, outage) = (engine.settings(), engine.shelf(), engine.outage(Topic::Events));
    let Some(due) = shelf.next_delivery(Topic::Events).await? else { return Ok(None) };
    if due > engine.store().now().await? {
        return Ok(Some(due));
    }
    let limit = u32::try_from(settings.order_batch).unwrap_or(u32::MAX);
    let deliveries = shelf.consume(Topic::Events, limit, settings.lease).await?;
    let mut settlements = Vec::new();
    match project(engine, &deliveries).await {
        Ok(heard) => {
            settlements = heard.settlements;
            // Who comes again together pays together, so what is early pays nothing where what is beside it could not be tried.
            let away: BTreeSet<&str> = heard.untaken.iter().map(|one| &*one.receipt.carrier).collect();
            let (unpaid, paid): (Vec<_>, Vec<_>) =
                heard.early.into_iter().partition(|one| away.contains(&*one.receipt.carrier));
            settlements.extend(paid.into_iter().map(|one| again(engine, one)));
            let untried = heard.untaken.iter().copied().chain(unpaid);
            settlements.extend(untried.map(|one| outage.hand_back(engine, one)));
        }
        Err(error) if is_outage(&error) => {
            tracing::warn!(target: "onceward", event = "projector.still_away", ?error, events = deliveries.len());
            settlements.extend(deliveries.iter().map(|one| outage.hand_back(engine, one)));
        }
        // It counts, as soon as the leases end.
        Err(error) => return Err(error),
    }
    outage.forget(&settlements);
    shelf.settle(Topic::Events, settlements).await?;
    shelf.next_delivery(Topic::Events).await
}

async fn project<'a>(engine: &Engine, batch: &'a [Delivery]) -> Result<Heard<'a>, Error> {
    let mut heard = Heard::default();
    let mut events = Vec::with_capacity(batch.len());
    let mut readable = Vec::with_capacity(batch.len());
    for delivery in batch {
        match wire::decode_event(&delivery.message.payload) {
            Ok(event) if !engine.settings().retry().is_spent(delivery.attempts) => {
                events.push(event);
                readable.push(delivery);
            }
            outcome => heard.settlements.push(dead(delivery, outcome.err().as_ref())),
        }
    }
    let outcomes = engine.admission().project(events).await?;
    let mut first = None;
    for (delivery, outcome) in readable.into_iter().zip(outcomes) {
        heard.is_any_taken |= matches!(outcome, Ok(Projected::Applied));
        match outcome {
            Ok(Projected::Applied | Projected::Nothing) => {
                heard.settlements.push(Settlement::Ack(delivery.receipt.clone()));
            }
            Ok(Projected::TooEarly) => heard.early.push(delivery),
            Err(error) if is_outage(&error) => {
                first = first.or(Some(error));
                heard.untaken.push(delivery);
            }
            Err(error) if error.class() == Class::Manual => {
                heard.settlements.push(dead(delivery, Some(&error)));
            }
            Err(error) => {
                tracing::warn!(target: "onceward", event = "projector.retry", id = %delivery.message.id, ?error);
                heard.settlements.push(again(engine, delivery));
            }
        }
    }
    if let Some(error) = first {
        tracing::warn!(target: "onceward", event = "projector.not_taken", ?error, events = heard.untaken.len());
    }
    Ok(heard)
}

fn again(engine: &Engine, delivery: &Delivery) -> Settlement {
    Settlement::Retry(delivery.receipt.clone(), wait_of_delivery(engine, delivery))
}

fn dead(delivery: &Delivery, why: Option<&Error>) -> Settlement {
    tracing::error!(target: "onceward", event = "projector.dead_letter", id = %delivery.message.id, error = ?why);
    Settlement::Dead(delivery.receipt.clone())
}
