//! The deadline trigger over delayed messages of the broker (OT-10 `broker`).
//!
//! Orders that are due at about the same time share one message, which the broker holds back until the earliest of them.
//! Invariants: nothing is told before its time by our own clock, because a broker rounds to its wheel and delivers up to a
//! second early: what comes early is held here, under the broker's lease. What lies further ahead than a broker delays is
//! armed again when it comes, before the old message is ended. A telling that nobody settles comes again from the broker.
//! What could not be armed is an error for the caller, and the sweep finds it. Deliberately absent: durability of what is
//! held here; its lease ends, and it comes again.
//!
//! **What the broker must have.** The topic `onceward-due` of type DELAY, the group `order-expiry`, and its timer wheel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use onceward_domain::due::{DueChange, Member, Token};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{Message, Topic};
use onceward_domain::ports::clock::{Clock, Ids};
use onceward_domain::ports::deadline::{
    Capabilities, DeadlineTrigger, Expiry, Receipt, Signal, SignalEnd, TriggerKind,
};
use onceward_domain::time::{Millis, Timestamp};
use tokio::runtime::Handle;

use crate::bus::{on_runtime, wind_down};
use crate::consume::{Arrival, CONSUME_WAIT, Source, lease_of};
use crate::expiries::{pack, parts_of, unpack};
use crate::failure::{Verdict, judge_answer};
use crate::link::{ClientName, Link};
use crate::options::{Names, Options};
use crate::polls::Polls;
use crate::proto;
use crate::publish::{Outgoing, timestamp, wire};
use crate::session::{Role, Session};
use crate::settle;

/// Longest delay that a broker is asked for: half of what its proxy takes by default. What lies further ahead is armed again.
pub(crate) const LONGEST_DELAY: Millis = Millis(12 * 3_600_000);
/// Messages that are sent at a time.
const SENDS_IN_FLIGHT: usize = 32;
/// Most tellings that are remembered until they are settled, and most early arrivals that are held. Beyond it the oldest are
/// forgotten, and come again after their lease.
const HELD_LIMIT: usize = 4_096;

/// The trigger. Making one needs a tokio runtime; it connects by itself and reconnects by itself.
pub struct RocketTrigger {
    inner: Arc<Inner>,
    runtime: Handle,
}

struct Inner {
    link: Link,
    names: Names,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    /// What this process is called at the broker.
    client: String,
    producer: OnceLock<Session>,
    consumer: OnceLock<Session>,
    polls: tokio::sync::Mutex<Polls>,
    hands: Mutex<Hands>,
    next_token: AtomicI64,
}

/// What has come from the broker and has no end yet.
#[derive(Default)]
struct Hands {
    /// What was not told yet, by the time of its earliest order.
    early: BTreeMap<(Timestamp, Member), Held>,
    /// What was told, by its token.
    told: BTreeMap<Token, (Member, String)>,
}

/// A message that waits for its time here.
struct Held {
    handle: String,
    attempts: u32,
    orders: Vec<Expiry>,
    /// While the broker gives it to nobody else.
    until: Timestamp,
}

impl RocketTrigger {
    /// A trigger over the broker of these options, on the present tokio runtime. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Code::Invalid`] for an address that is none.
    pub fn open(options: &Options, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|cause| {
            Error::new(Code::Invalid, "opening a trigger outside of a runtime").because(cause)
        })?;
        let inner = Inner {
            link: Link::new(options)?,
            names: options.names.clone(),
            client: format!("onceward-{}", ids.member()),
            clock,
            ids,
            producer: OnceLock::new(),
            consumer: OnceLock::new(),
            polls: tokio::sync::Mutex::default(),
            hands: Mutex::default(),
            next_token: AtomicI64::new(1),
        };
        Ok(Self { inner: Arc::new(inner), runtime })
    }

    /// Begins no polls any more, and waits, some 5 s and 10 s at most, until those under way have ended and what they brought waits
    /// here for its time.
    pub async fn wind_down(&self) {
        let inner = Arc::clone(&self.inner);
        let ending = async move {
            wind_down(&inner.polls).await;
            Ok(())
        };
        drop(on_runtime(&self.runtime, ending).await);
    }

    /// Waits for the polls' ends, hands back what they brought and what waits here for its time, and ends the sessions. What was told and
    /// not settled comes again after its lease. With a broker that answers nothing it takes 25 s at most.
    pub async fn close(&self) {
        let inner = Arc::clone(&self.inner);
        let closing = async move {
            inner.give_back().await;
            join_all(inner.consumer.get().into_iter().chain(inner.producer.get()).map(Session::end)).await;
            Ok(())
        };
        drop(on_runtime(&self.runtime, closing).await);
    }
}

impl Inner {
    fn client_name(&self, role: &str) -> ClientName {
        format!("{}@due-{role}", self.client).parse().expect("ids and our own names are plain text")
    }

    fn producer(&self) -> &Session {
        self.producer.get_or_init(|| {
            let role = Role::Producer { topics: vec![self.names.due_topic()] };
            Session::begin(self.link.clone(), self.client_name("producer"), role)
        })
    }

    fn consumer(&self) -> &Session {
        self.consumer.get_or_init(|| {
            let (topic, group) = (self.names.due_topic(), self.names.due_group());
            let role = Role::Consumer { topic, group, is_ordered: false };
            Session::begin(self.link.clone(), self.client_name("consumer"), role)
        })
    }

    fn source(&self) -> Source {
        Source {
            link: self.link.clone(),
            client: self.consumer().client().clone(),
            topic: self.names.due_topic(),
            group: self.names.due_group(),
        }
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the broker hold these orders back until their time, or for as long as it does.
    async fn arm(&self, expiries: Vec<Expiry>) -> Result<(), Error> {
        const DOING: &str = "arming deadlines";
        let parts = parts_of(expiries);
        let all = parts.len();
        let sent = stream::iter(parts).map(|part| self.send(part)).buffer_unordered(SENDS_IN_FLIGHT);
        let verdicts: Vec<Verdict> = sent.collect().await;
        let done = verdicts.iter().filter(|verdict| **verdict == Verdict::Done).count();
        if done == all {
            return Ok(());
        }
        let is_open = verdicts.contains(&Verdict::Perhaps);
        let code = if is_open { Code::OutcomeUnknown } else { Code::Unavailable };
        Err(Error::new(code, format!("{DOING}: the broker confirmed {done} of {all} messages")))
    }

    async fn send(&self, part: Vec<Expiry>) -> Verdict {
        let now = self.clock.now();
        let first = part.iter().map(|one| one.due_at).min().unwrap_or(now);
        let name = self.names.due_topic();
        let name_carrier = || self.ids.member().to_string();
        let client = self.producer().client();
        // The topic's kind says only that there is no order to keep.
        let topic = Topic::OrderCreate;
        let out = Outgoing { link: &self.link, client, topic, name: &name, now, name_carrier: &name_carrier };
        let load = [Message { id: self.ids.member(), key: Arc::from(""), payload: pack(&part) }];
        let mut message = wire(&out, &load, None);
        if let Some(properties) = &mut message.system_properties {
            properties.message_type = proto::MessageType::Delay.into();
            properties.delivery_timestamp = Some(timestamp(first.min(now.plus(LONGEST_DELAY))));
        }
        judge_answer(&self.link.send(client, message).await)
    }

    async fn take(&self, limit: usize, lease: Millis) -> Result<Vec<Signal>, Error> {
        let told = self.tell(limit);
        if !told.is_empty() {
            return Ok(told);
        }
        self.consumer().ready(CONSUME_WAIT).await?;
        let lease = lease_of(lease);
        let name_attempt = || self.ids.member().to_string();
        let wait = self.wait();
        let brought = self.polls.lock().await.consume(&self.source(), lease, wait, &name_attempt).await?;
        settle::hand_back(&self.source(), brought.stale.into_iter().map(Arrival::named)).await;
        let welcomed = stream::iter(brought.fresh).map(|arrival| self.welcome(arrival, lease));
        // One that is not armed anew comes again after its lease, and holds up no other.
        let welcomed: Vec<Result<(), Error>> = welcomed.buffer_unordered(SENDS_IN_FLIGHT).collect().await;
        welcomed.into_iter().collect::<Result<(), Error>>()?;
        Ok(self.tell(limit))
    }

    async fn give_back(&self) {
        let unread = self.polls.lock().await.end().await;
        let early = std::mem::take(&mut self.hands().early);
        let early = early.into_iter().map(|((_, carrier), held)| (carrier, held.handle));
        let unread: Vec<_> = unread.into_iter().map(Arrival::named).chain(early).collect();
        if !unread.is_empty() {
            settle::hand_back(&self.source(), unread).await;
        }
    }

    /// How long a poll is waited for: no longer than until something that is held is due.
    fn wait(&self) -> Duration {
        let first = self.hands().early.first_key_value().map(|((at, _), _)| *at);
        let until = first.map(|at| at.since(self.clock.now()).0.unsigned_abs());
        until.map_or(CONSUME_WAIT, |until| Duration::from_millis(until).min(CONSUME_WAIT))
    }

    /// Holds what has come until its time; arms anew what would be held longer than its lease allows.
    async fn welcome(&self, arrival: Arrival, lease: Millis) -> Result<(), Error> {
        let now = self.clock.now();
        let orders: Vec<Expiry> =
            arrival.messages.iter().flat_map(|message| unpack(&message.payload)).collect();
        // Of the lease at least half is left, or the poll would not have brought it; half of that is for whoever is told.
        let until = now.plus(Millis(lease.0 / 4));
        let first = orders.iter().map(|one| one.due_at).min();
        if first.is_some_and(|first| first < until) {
            let held = Held { handle: arrival.handle, attempts: arrival.attempts, orders, until };
            let mut hands = self.hands();
            hands.early.insert((first.unwrap_or(now), arrival.carrier), held);
            while hands.early.len() > HELD_LIMIT {
                hands.early.pop_last();
            }
            return Ok(());
        }
        if !orders.is_empty() {
            self.arm(orders).await?;
        }
        settle::end_one(&self.source(), &arrival.carrier, arrival.handle).await.map(|_| ())
    }

    /// Tells what is due of what is held.
    fn tell(&self, limit: usize) -> Vec<Signal> {
        let now = self.clock.now();
        let mut signals = Vec::new();
        let mut hands = self.hands();
        while let Some(entry) = hands.early.first_entry().filter(|_| signals.len() < limit) {
            if entry.key().0 > now {
                break;
            }
            let ((_, member), held) = entry.remove_entry();
            if held.until < now {
                // Its lease may be over: it comes again.
                continue;
            }
            let token = Token(self.next_token.fetch_add(1, Ordering::Relaxed));
            hands.told.insert(token, (member.clone(), held.handle));
            let orders = held.orders.iter().map(|one| one.purchase).collect();
            signals.push(Signal { receipt: Receipt { member, token }, attempts: held.attempts, orders });
        }
        while hands.told.len() > HELD_LIMIT {
            hands.told.pop_first();
        }
        signals
    }

    async fn settle(&self, ends: Vec<SignalEnd>) -> Result<u32, Error> {
        let source = self.source();
        let ending = stream::iter(ends).map(|end| self.settle_one(&source, end));
        let ended: Vec<Result<bool, Error>> = ending.buffer_unordered(SENDS_IN_FLIGHT).collect().await;
        let mut held = 0;
        for one in ended {
            held += u32::from(one?);
        }
        Ok(held)
    }

    /// Whether it was still held.
    async fn settle_one(&self, source: &Source, end: SignalEnd) -> Result<bool, Error> {
        let (receipt, again) = match end {
            SignalEnd::Ack(receipt) => (receipt, None),
            SignalEnd::Again { receipt, orders, wait } => (receipt, Some((orders, wait))),
        };
        let told = self.hands().told.remove(&receipt.token);
        let Some((member, handle)) = told.filter(|(member, _)| *member == receipt.member) else {
            return Ok(false);
        };
        let Some((orders, wait)) = again else {
            return settle::end_one(source, &member, handle).await;
        };
        // Ended first: whoever has lost the lease must not arm what somebody else was told meanwhile. What is lost between the
        // two, the sweep finds.
        if !settle::end_one(source, &member, handle).await? {
            return Ok(false);
        }
        let due_at = self.clock.now().plus(wait);
        let expiries = orders.into_iter().map(|purchase| Expiry { due_at, purchase }).collect();
        self.arm(expiries).await.map(|()| true)
    }
}

impl DeadlineTrigger for RocketTrigger {
    fn kind(&self) -> TriggerKind {
        TriggerKind::Broker
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { foresight: false }
    }

    fn within(&self, _member: &Member, _expiries: &[Expiry]) -> Vec<DueChange> {
        Vec::new()
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        let inner = Arc::clone(&self.inner);
        Box::pin(on_runtime(&self.runtime, async move { inner.arm(expiries).await }))
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        let inner = Arc::clone(&self.inner);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Box::pin(on_runtime(&self.runtime, async move { inner.take(limit, lease).await }))
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        let inner = Arc::clone(&self.inner);
        Box::pin(on_runtime(&self.runtime, async move { inner.settle(ends).await }))
    }

    /// A broker does not know; `take` waits.
    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        Box::pin(std::future::ready(Ok(Some(Millis(0)))))
    }
}
