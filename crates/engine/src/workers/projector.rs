//! The projector: brings the store's decisions to the gate (FS-13).
//!
//! Invariants: at-least-once and harmless to repeat, because the gate itself knows what it has applied; an event that
//! comes too early is brought again; what cannot be read becomes a dead letter; a gate that is away uses up no tries.

use onceward_domain::error::Error;
use onceward_domain::ports::admission::Projected;
use onceward_domain::ports::bus::{Delivery, Settlement, Topic};

use crate::engine::Engine;
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
    let limit = u32::try_from(settings.order_batch).unwrap_or(u32::MAX);
    let deliveries = engine.bus().consume(Topic::Events, limit, settings.lease).await?;
    if deliveries.is_empty() {
        return wait_until(engine, engine.bus().next_delivery(Topic::Events).await?).await;
    }
    outage
        .decide_all(engine, Topic::Events, &deliveries, |engine, batch| Box::pin(handle(engine, batch)))
        .await?;
    Ok(Next::Again)
}

/// Events that the gate did not take: that it takes them now shows more than that it answers, and changes nothing when they come
/// again.
async fn project_again(engine: &Engine, refused: &[Delivery]) -> Result<(), Error> {
    handle(engine, refused).await.map(drop)
}

async fn handle(engine: &Engine, batch: &[Delivery]) -> Result<Vec<Settlement>, Error> {
    let mut settlements = Vec::with_capacity(batch.len());
    let mut events = Vec::with_capacity(batch.len());
    let mut readable = Vec::with_capacity(batch.len());
    for delivery in batch {
        match wire::decode_event(&delivery.message.payload) {
            Ok(event) if !engine.settings().retry().is_spent(delivery.attempts) => {
                events.push(event);
                readable.push(delivery);
            }
            outcome => {
                let why = outcome.err();
                tracing::error!(target: "onceward", event = "projector.dead_letter", id = %delivery.message.id, error = ?why);
                settlements.push(Settlement::Dead(delivery.receipt.clone()));
            }
        }
    }
    let outcomes = engine.admission().project(events).await?;
    for (delivery, outcome) in readable.into_iter().zip(outcomes) {
        settlements.push(match outcome {
            Projected::Applied | Projected::Nothing => Settlement::Ack(delivery.receipt.clone()),
            Projected::TooEarly => {
                Settlement::Retry(delivery.receipt.clone(), wait_of_delivery(engine, delivery))
            }
        });
    }
    Ok(settlements)
}
