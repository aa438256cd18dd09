//! What a consumer remembers of an outage of what it decides with: the store, or the gate.
//!
//! A bus counts deliveries, and after so many of them a message is set aside; a broker does so by itself, whatever it is told. A
//! message that could not be tried, because what it is decided with was away, must not be counted to death, nor one of which
//! nobody can say whether it was decided: it is looked up by its id when it comes again (DR-02). Invariants: after a round that
//! failed for that, nothing is taken before what had failed goes well again; what was in hand is handed back, which costs it no
//! try, and for longer each time, whatever becomes of others meanwhile. Memory only: whoever starts anew takes once, and knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::decide::queue::trial;
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{Delivery, Receipt, Settlement, Topic};

use crate::engine::Engine;
use crate::execute::transact;

/// Most carriers of which it is remembered how often they were handed back. One that is forgotten waits briefly again.
const CARRIERS_LIMIT: usize = 1_024;

/// Whether nothing is known to have been decided: somebody was away, or the answer was lost.
pub(crate) fn is_outage(error: &Error) -> bool {
    match error.class() {
        Class::Retryable | Class::UnknownOutcome => true,
        Class::Rejected | Class::Conflict | Class::Manual => false,
    }
}

/// The error of a batch of which nothing is known to have been tried: where one member was decided, whoever decides was there, and the
/// others pay for their try, unless nobody knows what became of it.
pub(crate) fn outage_in<T>(outcomes: &mut Vec<Result<T, Error>>) -> Option<Error> {
    let is_of_outage = |outcome: &Result<T, Error>| outcome.as_ref().is_err_and(is_outage);
    let is_whole = !outcomes.is_empty() && outcomes.iter().all(is_of_outage);
    is_whole.then(|| outcomes.swap_remove(0).err()).flatten()
}

/// The memory of one consumer.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The batch that the last round failed at, while that is not over.
    refused: Option<Arc<[Delivery]>>,
    handed_back: BTreeMap<Arc<str>, HandedBack>,
}

/// What became of a carrier.
#[derive(Debug, Clone, Copy)]
struct HandedBack {
    /// The delivery that was handed back last.
    token: i64,
    times: u32,
}

impl State {
    /// How often the carrier of this delivery was handed back, with this time.
    fn count(&mut self, receipt: &Receipt) -> u32 {
        if self.handed_back.len() >= CARRIERS_LIMIT && !self.handed_back.contains_key(&receipt.carrier) {
            self.handed_back.pop_first();
        }
        let known = self.handed_back.entry(receipt.carrier.clone());
        let known = known.or_insert(HandedBack { token: receipt.token, times: 1 });
        // Its messages are handed back one by one.
        if known.token != receipt.token {
            *known = HandedBack { token: receipt.token, times: known.times.saturating_add(1) };
        }
        known.times
    }
}

impl Outage {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries again, where the last round failed, what it had failed at; `again` is given the batch.
    ///
    /// # Errors
    /// Where somebody is still away: then nothing is to be taken.
    pub(crate) async fn look(
        &self,
        engine: &Engine,
        again: for<'a> fn(&'a Engine, &'a [Delivery]) -> Answer<'a, ()>,
    ) -> Result<(), Error> {
        let Some(refused) = self.state().refused.clone() else { return Ok(()) };
        engine.admission().next_send().await?;
        match again(engine, &refused).await {
            Err(error) if is_outage(&error) => return Err(error),
            // Whatever else is wrong with the batch is found when it comes again.
            Ok(()) | Err(_) => {}
        }
        self.state().refused = None;
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
                Ok(settlements) => {
                    self.forget(&settlements);
                    if let Err(error) = engine.bus().settle(topic, settlements).await {
                        self.give_up(engine, topic, others).await;
                        return Err(error);
                    }
                }
                Err(error) if is_outage(&error) => {
                    self.state().refused = Some(Arc::from(batch));
                    self.give_up(engine, topic, left).await;
                    return Err(error);
                }
                // Any other counts, as soon as the leases end, for those whom it concerns.
                Err(error) => {
                    self.give_up(engine, topic, others).await;
                    return Err(error);
                }
            }
            left = others;
        }
        Ok(())
    }

    /// Has a delivery come again that could not be tried.
    pub(crate) fn hand_back(&self, engine: &Engine, delivery: &Delivery) -> Settlement {
        let times = self.state().count(&delivery.receipt);
        Settlement::HandBack(delivery.receipt.clone(), engine.settings().retry().wait(times, 0))
    }

    /// What has come to an end is not counted any more.
    pub(crate) fn forget(&self, settlements: &[Settlement]) {
        let mut state = self.state();
        for settlement in settlements {
            match settlement {
                Settlement::Ack(receipt) | Settlement::Retry(receipt, _) | Settlement::Dead(receipt) => {
                    state.handed_back.remove(&receipt.carrier);
                }
                Settlement::HandBack(..) => {}
            }
        }
    }

    /// Hands back what nobody will look at here.
    async fn give_up(&self, engine: &Engine, topic: Topic, left: &[Delivery]) {
        if left.is_empty() {
            return;
        }
        let back = left.iter().map(|delivery| self.hand_back(engine, delivery)).collect();
        if let Err(lost) = engine.bus().settle(topic, back).await {
            tracing::warn!(target: "onceward", event = "bus.hand_back_failed", error = ?lost);
        }
    }
}

/// Whether the store takes writes: one that answers questions may still have a full disk, or be a copy.
///
/// # Errors
/// The store's.
pub(crate) async fn try_to_write(engine: &Engine) -> Result<(), Error> {
    let member = engine.ids().member();
    let write = move |facts: &mut Facts| Ok((trial(facts.now, &member), ()));
    transact(engine.store(), "outage.look", Need::default(), write).await
}
