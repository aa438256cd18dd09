//! A bus that can be away, for tests of what piles up in front of it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{Bus, Capabilities, Delivery, Message, Published, Settlement, Topic};
use onceward_domain::time::{Millis, Timestamp};

/// A line to a bus.
pub(crate) struct Line {
    inner: Arc<dyn Bus>,
    is_away: AtomicBool,
    is_silent: AtomicBool,
    /// Of the next settlements nobody hears.
    is_deaf: AtomicBool,
    /// Refuses the message of this id, whatever else it takes.
    refuses: Mutex<Option<Arc<str>>>,
    asked: AtomicU32,
    given: AtomicU32,
}

impl Line {
    pub(crate) fn to(inner: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            is_away: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            is_deaf: AtomicBool::new(false),
            refuses: Mutex::new(None),
            asked: AtomicU32::new(0),
            given: AtomicU32::new(0),
        })
    }

    /// From now on nobody is there, and everybody knows it.
    pub(crate) fn cut(&self) {
        self.is_away.store(true, Ordering::SeqCst);
    }

    /// From now on no publish has an answer.
    pub(crate) fn silence(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }

    /// Of the next settlements nobody hears that they have arrived.
    pub(crate) fn lose_settlements(&self) {
        self.is_deaf.store(true, Ordering::SeqCst);
    }

    /// All is well again.
    pub(crate) fn mend(&self) {
        self.is_away.store(false, Ordering::SeqCst);
        self.is_silent.store(false, Ordering::SeqCst);
    }

    pub(crate) fn refuse(&self, id: &str) {
        *self.refuses.lock().unwrap() = Some(Arc::from(id));
    }

    /// How often something was published, or tried to be.
    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    /// How many deliveries it has made, which a broker counts by itself.
    pub(crate) fn given(&self) -> u32 {
        self.given.load(Ordering::SeqCst)
    }

    async fn give(&self, topic: Topic, limit: u32, lease: Millis) -> Result<Vec<Delivery>, Error> {
        let deliveries = self.inner.consume(topic, limit, lease).await?;
        self.given.fetch_add(u32::try_from(deliveries.len()).unwrap(), Ordering::SeqCst);
        Ok(deliveries)
    }

    fn away<T: Send + 'static>(&self) -> Option<Answer<'_, T>> {
        let is_away = self.is_away.load(Ordering::SeqCst);
        is_away.then(|| -> Answer<'_, T> {
            Box::pin(async { Err(Error::new(Code::Unavailable, "the bus is away")) })
        })
    }

    async fn take(&self, topic: Topic, messages: Vec<Message>) -> Result<Vec<Published>, Error> {
        let refused = self.refuses.lock().unwrap().clone();
        let Some(refused) = refused else { return self.inner.publish(topic, messages).await };
        let mut outcomes = Vec::with_capacity(messages.len());
        for message in messages {
            outcomes.push(if message.id == refused {
                Published::Rejected
            } else {
                self.inner.publish(topic, vec![message]).await?.remove(0)
            });
        }
        Ok(outcomes)
    }
}

impl Bus for Line {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn publish(&self, topic: Topic, messages: Vec<Message>) -> Answer<'_, Vec<Published>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_silent.load(Ordering::SeqCst) {
            return Box::pin(async move { Ok(vec![Published::Unknown; messages.len()]) });
        }
        self.away().unwrap_or_else(|| Box::pin(self.take(topic, messages)))
    }

    fn consume(&self, topic: Topic, limit: u32, lease: Millis) -> Answer<'_, Vec<Delivery>> {
        self.away().unwrap_or_else(|| Box::pin(self.give(topic, limit, lease)))
    }

    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()> {
        if self.is_deaf.swap(false, Ordering::SeqCst) {
            return Box::pin(async move {
                self.inner.settle(topic, settlements).await?;
                Err(Error::new(Code::Unavailable, "the line broke"))
            });
        }
        self.away().unwrap_or_else(|| self.inner.settle(topic, settlements))
    }

    fn next_delivery(&self, topic: Topic) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_delivery(topic)
    }
}
