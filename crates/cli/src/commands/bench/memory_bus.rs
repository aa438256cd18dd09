//! A bus that hands out what was put into it: the messages that a measurement has made beforehand.
//!
//! Purpose: the plain way gets its messages from memory, so the engine's consumer gets them from memory as well; what
//! is compared is what a message costs the store. Invariant: each message is handed out once. Deliberately absent:
//! redelivery; a measurement in which something had to come again is not clean and is thrown away.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use onceward_domain::error::{Code, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{
    Bus, Capabilities, Delivery, Message, Order, Published, Settlement, Topic,
};
use onceward_domain::time::{Millis, Timestamp};

/// The bus.
#[derive(Debug, Default)]
pub(crate) struct MemoryBus(Mutex<Content>);

#[derive(Debug, Default)]
struct Content {
    waiting: VecDeque<Delivery>,
    not_acked: u64,
}

impl MemoryBus {
    /// Puts messages into it.
    pub(crate) fn fill(&self, deliveries: Vec<Delivery>) {
        self.content(|content| content.waiting.extend(deliveries));
    }

    /// Whether everything was handed out, and all of it was acknowledged.
    pub(crate) fn is_clean(&self) -> bool {
        self.content(|content| content.waiting.is_empty() && content.not_acked == 0)
    }

    fn content<T>(&self, look: impl FnOnce(&mut Content) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Bus for MemoryBus {
    fn capabilities(&self) -> Capabilities {
        let (shortest_lease, lateness) = (Millis(0), Millis(0));
        Capabilities { order: Order::Topic, foresight: true, shortest_lease, lateness }
    }

    fn publish(&self, _: Topic, _: Vec<Message>) -> Answer<'_, Vec<Published>> {
        Box::pin(async { Err(Error::new(Code::Unavailable, "publishing to a bus that is only read")) })
    }

    fn consume(&self, _: Topic, limit: u32, _: Millis) -> Answer<'_, Vec<Delivery>> {
        let taken = self.content(|content| {
            let count = content.waiting.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
            content.waiting.drain(..count).collect()
        });
        Box::pin(async { Ok(taken) })
    }

    fn settle(&self, _: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()> {
        let bad = settlements.iter().filter(|one| !matches!(one, Settlement::Ack(_))).count();
        self.content(|content| content.not_acked += bad as u64);
        Box::pin(async { Ok(()) })
    }

    fn next_delivery(&self, _: Topic) -> Answer<'_, Option<Timestamp>> {
        Box::pin(async { Ok(None) })
    }
}
