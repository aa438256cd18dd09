//! The forwarder: brings what is left on the bus that was used before to the one that is used now.
//!
//! A server that had its bus in its store and is started with a broker would leave messages and events behind that nobody reads.
//! Invariants: a message is taken off the old bus only after the new one has acknowledged it; the copy that a crash in between
//! makes is recognised like any other. Nodes that still use the old bus meanwhile are forwarded too. Deliberately absent: the way
//! back, because a server without the broker's address cannot read from it.

use onceward_domain::error::Error;
use onceward_domain::ports::bus::{Bus, Delivery, Published, Settlement, Topic};
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::workers::{Next, wait_until};

/// Between two looks at a bus on which nothing is left.
const LOOK: Millis = Millis(60_000);

/// Takes what is left and publishes it.
///
/// # Errors
/// Either bus's; what was not settled comes again.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let Some(old) = engine.bus_left_behind() else { return Ok(Next::Wait(None)) };
    let settings = engine.settings();
    let limit = u32::try_from(settings.order_batch).unwrap_or(u32::MAX);
    let mut is_empty = true;
    for topic in Topic::ALL {
        let deliveries = old.consume(topic, limit, settings.lease).await?;
        if deliveries.is_empty() {
            continue;
        }
        is_empty = false;
        tracing::info!(target: "onceward", event = "bus.forwarding", topic = topic.name(), messages = deliveries.len());
        let messages = deliveries.iter().map(|delivery| delivery.message.clone()).collect();
        let outcomes = match engine.bus().publish(topic, messages).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                old.settle(topic, deliveries.iter().map(|one| back(engine, one)).collect()).await?;
                return Err(error);
            }
        };
        let settlement = |(delivery, outcome): (&Delivery, Published)| match outcome {
            Published::Acked => Settlement::Ack(delivery.receipt.clone()),
            Published::Unknown | Published::Rejected | Published::Busy => back(engine, delivery),
        };
        old.settle(topic, deliveries.iter().zip(outcomes).map(settlement).collect()).await?;
    }
    if is_empty { rest(engine, old).await } else { Ok(Next::Again) }
}

/// Until something comes again that was handed back, or is under another node's lease; else until the next look. Nobody wakes
/// this worker.
async fn rest(engine: &Engine, old: &dyn Bus) -> Result<Next, Error> {
    if !old.capabilities().foresight {
        return Ok(Next::Wait(Some(LOOK)));
    }
    let mut first = None;
    for topic in Topic::ALL {
        first = first.into_iter().chain(old.next_delivery(topic).await?).min();
    }
    match wait_until(engine, first).await? {
        Next::Wait(Some(wait)) => Ok(Next::Wait(Some(wait.min(LOOK)))),
        Next::Wait(None) | Next::Again => Ok(Next::Wait(Some(LOOK))),
    }
}

/// It stays, and comes again a little later: a bus that does not take it costs it nothing.
fn back(engine: &Engine, delivery: &Delivery) -> Settlement {
    Settlement::HandBack(delivery.receipt.clone(), engine.settings().poll)
}
