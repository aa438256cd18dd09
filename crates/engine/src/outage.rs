//! What a consumer remembers of an outage of what it decides with: the store, or the gate.
//!
//! A bus counts deliveries, and after so many of them a message is set aside. A message that could not be tried, because what it
//! is decided with was away, must not be counted to death. Invariants: while the last round failed for that, nothing is taken
//! before the store and the gate answer again; what was in hand is handed back, which costs it no try. Memory only: whoever starts
//! anew takes once, and knows.

use std::sync::atomic::{AtomicU32, Ordering};

use onceward_domain::error::{Class, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{Delivery, Settlement, Topic};

use crate::engine::Engine;

/// The memory of one consumer.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Rounds that failed, one after the other.
    rounds: AtomicU32,
}

impl Outage {
    /// Asks, where the last round failed, whether somebody is there again.
    ///
    /// # Errors
    /// Where somebody is still away: then nothing is to be taken.
    pub(crate) async fn look(&self, engine: &Engine) -> Result<(), Error> {
        if self.rounds.load(Ordering::Relaxed) > 0 {
            engine.store().now().await?;
            engine.admission().next_send().await?;
        }
        Ok(())
    }

    /// Decides what was taken, batch by batch, and settles each batch after it was decided.
    ///
    /// # Errors
    /// Of the batch that failed, or the bus's; what was not settled comes again.
    pub(crate) async fn decide_all(
        &self,
        engine: &Engine,
        topic: Topic,
        deliveries: &[Delivery],
        decide: for<'a> fn(&'a Engine, &'a [Delivery]) -> Answer<'a, Vec<Settlement>>,
    ) -> Result<(), Error> {
        let mut left = deliveries;
        while !left.is_empty() {
            let (batch, others) = left.split_at(left.len().min(engine.settings().order_batch));
            match decide(engine, batch).await {
                Ok(settlements) => engine.bus().settle(topic, settlements).await?,
                Err(error) => return Err(self.give_up(engine, topic, left, error).await),
            }
            self.rounds.store(0, Ordering::Relaxed);
            left = others;
        }
        Ok(())
    }

    /// A round failed with this error, which is given back. Where it says that somebody was away, what is left in hand is handed
    /// back, for longer from round to round; any other counts, as soon as the leases end.
    async fn give_up(&self, engine: &Engine, topic: Topic, left: &[Delivery], error: Error) -> Error {
        if error.class() != Class::Retryable {
            return error;
        }
        let rounds = self.rounds.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let wait = engine.settings().retry().wait(rounds, 0);
        let back = |delivery: &Delivery| Settlement::HandBack(delivery.receipt.clone(), wait);
        if let Err(lost) = engine.bus().settle(topic, left.iter().map(back).collect()).await {
            tracing::warn!(target: "onceward", event = "bus.hand_back_failed", error = ?lost);
        }
        error
    }
}
