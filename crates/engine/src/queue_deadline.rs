//! A deadline trigger in the memory of the process: a delayed queue to which orders are offered and from which those whose
//! time has come are taken (OT-10 `queue`).
//!
//! Its manner is that of Redisson's delayed queue, with what that one lacks: a taken member stays until it is acknowledged,
//! and is told again when its lease ends. Invariants: an order is in the queue once; a token is handed out once; memory has
//! a limit. It forgets everything when the process ends, which is what the sweep is for. Deliberately absent: durability, and
//! any look at the orders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::due::{DueChange, Member, Token};
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Receipt, Signal, SignalEnd, TriggerKind};
use onceward_domain::time::{Millis, Timestamp};

/// Most orders that wait in the queue: some 200 MB. Beyond it an offer is forgotten, and the sweep finds the order.
pub const CAPACITY: usize = 1 << 20;

/// The trigger.
pub struct QueueTrigger {
    clock: Arc<dyn Clock>,
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: BTreeMap<Member, Waiting>,
    /// The same members by the time at which they are told (again).
    by_time: BTreeSet<(Timestamp, Member)>,
    last_token: i64,
}

struct Waiting {
    order: PurchaseId,
    /// When it is due, or when its lease ends.
    due_at: Timestamp,
    attempts: u32,
    /// The telling that may settle it.
    held_by: Option<Token>,
}

impl QueueTrigger {
    /// An empty queue that reads this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_capacity(clock, CAPACITY)
    }

    /// The same with another limit.
    #[must_use]
    pub fn with_capacity(clock: Arc<dyn Clock>, capacity: usize) -> Self {
        Self { clock, capacity, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves both maps in step before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, expiry: Expiry, capacity: usize) -> bool {
        let member: Member = Arc::from(expiry.purchase.order().to_string());
        if self.members.contains_key(&member) {
            return true;
        }
        if self.members.len() >= capacity {
            return false;
        }
        let waiting = Waiting { order: expiry.purchase, due_at: expiry.due_at, attempts: 0, held_by: None };
        self.by_time.insert((expiry.due_at, member.clone()));
        self.members.insert(member, waiting);
        true
    }

    fn take(&mut self, now: Timestamp, limit: usize, lease: Millis) -> Vec<Signal> {
        let due = self.by_time.iter().take_while(|(at, _)| *at <= now).take(limit);
        let due: Vec<(Timestamp, Member)> = due.cloned().collect();
        let mut signals = Vec::with_capacity(due.len());
        for entry in due {
            self.last_token += 1;
            let token = Token(self.last_token);
            let waiting = self.members.get_mut(&entry.1).expect("both maps hold the same members");
            waiting.due_at = now.plus(lease);
            waiting.attempts = waiting.attempts.saturating_add(1);
            waiting.held_by = Some(token);
            let signal = Signal {
                receipt: Receipt { member: entry.1.clone(), token },
                attempts: waiting.attempts,
                orders: vec![waiting.order],
            };
            self.by_time.insert((waiting.due_at, entry.1.clone()));
            self.by_time.remove(&entry);
            signals.push(signal);
        }
        signals
    }

    /// Whether the telling still held it.
    fn settle(&mut self, end: SignalEnd, now: Timestamp) -> bool {
        let (receipt, again) = match end {
            SignalEnd::Ack(receipt) => (receipt, None),
            SignalEnd::Again { receipt, wait, .. } => (receipt, Some(now.plus(wait))),
        };
        let member = receipt.member;
        let held = self.members.get_mut(&member).filter(|one| one.held_by == Some(receipt.token));
        let Some(waiting) = held else { return false };
        self.by_time.remove(&(waiting.due_at, member.clone()));
        match again {
            None => {
                self.members.remove(&member);
            }
            Some(due_at) => {
                waiting.due_at = due_at;
                waiting.attempts = waiting.attempts.saturating_sub(1);
                waiting.held_by = None;
                self.by_time.insert((due_at, member));
            }
        }
        true
    }
}

impl DeadlineTrigger for QueueTrigger {
    fn kind(&self) -> TriggerKind {
        TriggerKind::Queue
    }

    fn within(&self, _member: &Member, _expiries: &[Expiry]) -> Vec<DueChange> {
        Vec::new()
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut state = self.state();
            let forgotten = expiries.into_iter().filter(|one| !state.put(*one, self.capacity)).count();
            drop(state);
            if forgotten > 0 {
                tracing::warn!(target: "onceward", event = "deadline.queue_full", forgotten, "the sweep will find them");
            }
            Ok(())
        })
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        Box::pin(async move {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(self.state().take(self.clock.now(), limit, lease))
        })
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        Box::pin(async move {
            let now = self.clock.now();
            let mut state = self.state();
            let mut held = 0;
            for end in ends {
                held += u32::from(state.settle(end, now));
            }
            Ok(held)
        })
    }

    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        Box::pin(async move {
            let first = self.state().by_time.first().map(|(at, _)| *at);
            Ok(first.map(|at| at.since(self.clock.now())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp(1_000)
        }
    }

    fn answer<T>(mut answer: Answer<'_, T>) -> T {
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer.unwrap(),
            Poll::Pending => panic!("the queue never waits"),
        }
    }

    #[test]
    fn ot_10_a_full_queue_forgets_and_goes_on() {
        let queue = QueueTrigger::with_capacity(Arc::new(Still), 2);
        let expiry =
            |number| Expiry { due_at: Timestamp(0), purchase: PurchaseId::from_digest([number; 16], 1) };
        answer(queue.offer((1..=5).map(expiry).collect()));
        let told = answer(queue.take(10, Millis(1)));
        assert_eq!(told.iter().map(|one| one.orders[0]).collect::<Vec<_>>().len(), 2);
        answer(queue.settle(told.into_iter().map(|one| SignalEnd::Ack(one.receipt)).collect()));
        answer(queue.offer(vec![expiry(6)]));
        assert_eq!(answer(queue.take(10, Millis(1))).len(), 1, "there is room again");
    }
}
