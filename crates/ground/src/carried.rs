//! A bus over a broker, for tests that must know when nothing is on its way any more.
//!
//! A broker does not say so. Invariants: whatever is published is on its way until every one of its messages was acknowledged
//! or set aside; while nothing is, `consume` does not wait for anything. Age is told by the test's clock, because a broker
//! stamps what it stores with its own. Deliberately absent: messages of others; the topics are the test's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{
    Bus, Capabilities, Delivery, Message, Published, Receipt, Settlement, Topic,
};
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::{Millis, Timestamp};

/// What is on its way, and since when; shared by the nodes of one place.
#[derive(Default)]
pub(crate) struct Load {
    waiting: Mutex<HashMap<(Topic, Arc<str>), Timestamp>>,
}

impl Load {
    fn waiting(&self) -> MutexGuard<'_, HashMap<(Topic, Arc<str>), Timestamp>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many messages.
    pub(crate) fn size(&self) -> usize {
        self.waiting().len()
    }

    fn has(&self, topic: Topic) -> bool {
        self.waiting().keys().any(|(of, _)| *of == topic)
    }
}

/// One delivery's carrier, lease and position.
type Name = (Arc<str>, i64, u32);

/// The bus.
pub(crate) struct Carried<B> {
    inner: B,
    load: Arc<Load>,
    clock: Arc<dyn Clock>,
    handed_out: Mutex<HashMap<Name, Arc<str>>>,
}

impl<B: Bus> Carried<B> {
    /// This bus, watched.
    pub(crate) fn new(inner: B, load: Arc<Load>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, load, clock, handed_out: Mutex::default() }
    }

    fn handed_out(&self) -> MutexGuard<'_, HashMap<Name, Arc<str>>> {
        self.handed_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, topic: Topic, receipts: &[Receipt]) {
        for receipt in receipts {
            let name = (receipt.carrier.clone(), receipt.token, receipt.index);
            if let Some(id) = self.handed_out().remove(&name) {
                self.load.waiting().remove(&(topic, id));
            }
        }
    }
}

impl<B: Bus> Bus for Carried<B> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn publish(&self, topic: Topic, messages: Vec<Message>) -> Answer<'_, Vec<Published>> {
        let ids: Vec<Arc<str>> = messages.iter().map(|one| one.id.clone()).collect();
        let now = self.clock.now();
        self.load.waiting().extend(ids.iter().map(|id| ((topic, id.clone()), now)));
        Box::pin(async move {
            let published = self.inner.publish(topic, messages).await?;
            for (id, outcome) in ids.into_iter().zip(&published) {
                if matches!(outcome, Published::Rejected | Published::Busy) {
                    self.load.waiting().remove(&(topic, id));
                }
            }
            Ok(published)
        })
    }

    fn consume(&self, topic: Topic, limit: u32, lease: Millis) -> Answer<'_, Vec<Delivery>> {
        Box::pin(async move {
            if !self.load.has(topic) {
                return Ok(Vec::new());
            }
            let mut deliveries = self.inner.consume(topic, limit, lease).await?;
            for one in &mut deliveries {
                let receipt = &one.receipt;
                let name = (receipt.carrier.clone(), receipt.token, receipt.index);
                self.handed_out().insert(name, one.message.id.clone());
                let known = self.load.waiting().get(&(topic, one.message.id.clone())).copied();
                one.published_at = known.unwrap_or_else(|| self.clock.now());
            }
            Ok(deliveries)
        })
    }

    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()> {
        let end = |one: &Settlement| match one {
            Settlement::Ack(receipt) | Settlement::Dead(receipt) => Some(receipt.clone()),
            Settlement::Retry(..) | Settlement::HandBack(..) => None,
        };
        let ends: Vec<Receipt> = settlements.iter().filter_map(end).collect();
        Box::pin(async move {
            self.inner.settle(topic, settlements).await?;
            self.ended(topic, &ends);
            Ok(())
        })
    }

    fn next_delivery(&self, topic: Topic) -> Answer<'_, Option<Timestamp>> {
        Box::pin(async move {
            if self.load.has(topic) { self.inner.next_delivery(topic).await } else { Ok(None) }
        })
    }
}
