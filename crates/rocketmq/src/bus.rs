//! The bus itself: sessions, polls and flights, put behind the port.
//!
//! Invariants: everything runs on the runtime that the bus was made on, so that a caller needs none; a caller that
//! hangs up cuts nothing off. Sessions begin with the first use: a node that only publishes is no consumer.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::join_all;
use onceward_domain::error::{Code, Error};
use onceward_domain::flight::{Flight, Flights};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{
    Bus, Capabilities, Delivery, Message, Order, Published, Receipt, Settlement, Topic,
};
use onceward_domain::ports::clock::{Clock, Ids};
use onceward_domain::time::{Millis, Timestamp};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::consume::{Arrival, CONSUME_WAIT, POLL_DEADLINE, SHORTEST_LEASE, Source, brokers_of};
use crate::link::{ClientName, Link};
use crate::options::{Names, Options};
use crate::polls::Polls;
use crate::publish::{self, Outgoing};
use crate::session::{Role, Session};
use crate::settle::{self, GRAVE, Known, Landed, Memory, Ticket};

/// Most carriers in the air. Beyond it the oldest are forgotten, and come again after their lease.
const FLIGHTS_LIMIT: usize = 1_024;
/// A redelivery is later than its time by this much at most: a broker looks for ended leases from time to time, and
/// more lazily while nothing moves.
const LATENESS: Millis = Millis(20_000);

/// The bus over a RocketMQ broker.
///
/// Making one needs a tokio runtime; it connects by itself and reconnects by itself.
pub struct RocketBus {
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
    readers: [Reader; Topic::ALL.len()],
    next_token: AtomicI64,
}

/// One topic's consuming side.
struct Reader {
    session: OnceLock<Session>,
    polls: tokio::sync::Mutex<Polls>,
    air: Mutex<Air>,
}

#[derive(Default)]
struct Air {
    flights: Flights<Ticket>,
    memory: Memory,
}

/// What a check has found at the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The topic that was asked for.
    pub topic: String,
    /// How many brokers have queues of it.
    pub brokers: usize,
}

impl RocketBus {
    /// A bus over the broker of these options, on the present tokio runtime. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Code::Invalid`] for an address that is none.
    pub fn open(options: &Options, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|cause| {
            Error::new(Code::Invalid, "opening a bus outside of a runtime").because(cause)
        })?;
        let reader = || Reader {
            session: OnceLock::new(),
            polls: tokio::sync::Mutex::default(),
            air: Mutex::default(),
        };
        let inner = Inner {
            link: Link::new(options)?,
            names: options.names.clone(),
            client: format!("onceward-{}", ids.member()),
            clock,
            ids,
            producer: OnceLock::new(),
            readers: [reader(), reader()],
            next_token: AtomicI64::new(1),
        };
        Ok(Self { inner: Arc::new(inner), runtime })
    }

    /// Looks whether the broker answers and has every topic, dead-letter topics included.
    ///
    /// # Errors
    /// [`Code::Unavailable`] with what is missing.
    pub async fn check(&self) -> Result<Vec<Found>, Error> {
        let inner = Arc::clone(&self.inner);
        self.on_runtime(async move { inner.check().await }).await
    }

    /// Begins no polls any more, and waits, some 5 s and 10 s at most, until those under way have ended and whoever consumes has taken
    /// what they brought. What is left then is handed back by [`Self::close`].
    pub async fn wind_down(&self) {
        let inner = Arc::clone(&self.inner);
        let ending = async move {
            join_all(Topic::ALL.map(|topic| wind_down(&inner.reader(topic).polls))).await;
            Ok(())
        };
        drop(self.on_runtime(ending).await);
    }

    /// Waits for the polls' ends, hands back what nobody has taken of what they brought, and ends the sessions. What was handed out and
    /// not settled comes again after its lease. With a broker that answers nothing it takes 25 s at most.
    pub async fn close(&self) {
        let inner = Arc::clone(&self.inner);
        let closing = async move {
            inner.close().await;
            Ok(())
        };
        drop(self.on_runtime(closing).await);
    }

    /// Runs it on the bus's own runtime, so that the caller needs none and cannot cut it off.
    async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        on_runtime(&self.runtime, work).await
    }
}

/// Runs work on a runtime of its own, so that who asks needs none and cannot cut it off.
pub(crate) async fn on_runtime<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    match runtime.spawn(work).await {
        Ok(answer) => answer,
        Err(cause) => Err(Error::new(Code::OutcomeUnknown, "asking the broker").because(cause)),
    }
}

impl Inner {
    fn reader(&self, topic: Topic) -> &Reader {
        match topic {
            Topic::OrderCreate => &self.readers[0],
            Topic::Events => &self.readers[1],
        }
    }

    fn client_name(&self, role: &str) -> ClientName {
        format!("{}@{role}", self.client).parse().expect("ids and our own names are plain text")
    }

    fn producer(&self) -> &Session {
        self.producer.get_or_init(|| {
            let topics = Topic::ALL.into_iter().map(|topic| self.names.topic(topic)).collect();
            Session::begin(self.link.clone(), self.client_name("producer"), Role::Producer { topics })
        })
    }

    fn session(&self, topic: Topic) -> &Session {
        self.reader(topic).session.get_or_init(|| {
            let (name, group) = (self.names.topic(topic), self.names.group(topic));
            let client = self.client_name(topic.group());
            let role = Role::Consumer { topic: name, group, is_ordered: topic == Topic::Events };
            Session::begin(self.link.clone(), client, role)
        })
    }

    fn source(&self, topic: Topic) -> Source {
        Source {
            link: self.link.clone(),
            client: self.session(topic).client().clone(),
            topic: self.names.topic(topic),
            group: self.names.group(topic),
        }
    }

    async fn publish(&self, topic: Topic, messages: Vec<Message>) -> Vec<Published> {
        if messages.is_empty() {
            return Vec::new();
        }
        let name = self.names.topic(topic);
        self.send(topic, &name, &messages).await
    }

    async fn send(&self, topic: Topic, name: &str, messages: &[Message]) -> Vec<Published> {
        let name_carrier = || self.ids.member().to_string();
        let client = self.producer().client();
        let out = Outgoing {
            link: &self.link,
            client,
            topic,
            name,
            now: self.clock.now(),
            name_carrier: &name_carrier,
        };
        publish::publish(&out, messages).await
    }

    async fn consume(&self, topic: Topic, lease: Millis) -> Result<Vec<Delivery>, Error> {
        let reader = self.reader(topic);
        // What has come waits for nobody: neither for a session, nor for a route.
        let brought = reader.polls.lock().await.brought(lease);
        let brought = match brought {
            Some(brought) => brought,
            None => {
                self.session(topic).ready(CONSUME_WAIT).await?;
                let name_attempt = || self.ids.member().to_string();
                let mut polls = reader.polls.lock().await;
                polls.consume(&self.source(topic), lease, CONSUME_WAIT, &name_attempt).await?
            }
        };
        let (deliveries, emptied) = self.hand_out(&mut reader.air(), brought.fresh);
        let tidied = async {
            // All of it was settled before, and only the broker does not know.
            let (_, ended) = tokio::join!(self.return_stale(topic, brought.stale), self.end(topic, emptied));
            if let Err(error) = ended {
                tracing::warn!(target: "onceward", event = "broker.not_ended", error = error.operator_text());
            }
        };
        if deliveries.is_empty() {
            tidied.await;
        } else if timeout(CONSUME_WAIT, tidied).await.is_err() {
            // The leases of what is handed out run; the rest comes again after its own.
            tracing::warn!(target: "onceward", event = "broker.slow", "it was not told what has ended");
        }
        Ok(deliveries)
    }

    /// Hands back what came too long ago; it pays for no try.
    async fn return_stale(&self, topic: Topic, stale: Vec<Arrival>) {
        if stale.is_empty() {
            return;
        }
        tracing::warn!(target: "onceward", event = "broker.poll_stale", carriers = stale.len());
        {
            let memory = &mut self.reader(topic).air().memory;
            stale.iter().for_each(|one| memory.note_unread(&one.carrier, one.messages.len()));
        }
        settle::hand_back(&self.source(topic), stale.into_iter().map(Arrival::named)).await;
    }

    /// Ends carriers at the broker. Those that it does not keep need not be recognised any more, and those whose lease was lost are to
    /// be decided again (LQ-02).
    async fn end(&self, topic: Topic, landed: Vec<Landed>) -> Result<(), Error> {
        if landed.is_empty() {
            return Ok(());
        }
        let done = settle::done_with(&landed);
        settle::end(&self.source(topic), landed).await?;
        let memory = &mut self.reader(topic).air().memory;
        done.iter().for_each(|carrier| memory.forget(carrier));
        Ok(())
    }

    /// Puts carriers into the air; gives back those in which nothing is left to hand out.
    fn hand_out(&self, air: &mut Air, arrivals: Vec<Arrival>) -> (Vec<Delivery>, Vec<Landed>) {
        let (mut deliveries, mut emptied) = (Vec::new(), Vec::new());
        for arrival in arrivals {
            let token = self.next_token.fetch_add(1, Ordering::Relaxed);
            let carrier = arrival.carrier.clone();
            let flight = take(&air.memory, arrival, token, &mut deliveries);
            if flight.ends.iter().all(Option::is_some) {
                emptied.push((carrier, token, flight));
            } else {
                air.flights.take_off(carrier, token, flight);
            }
        }
        air.flights.shrink(FLIGHTS_LIMIT);
        (deliveries, emptied)
    }

    async fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Result<(), Error> {
        let landed = self.reader(topic).air().flights.land(settlements);
        if landed.is_empty() {
            return Ok(());
        }
        let name = self.names.dead_letters(topic);
        let name_carrier = || self.ids.member().to_string();
        let client = self.producer().client();
        let (link, now) = (&self.link, self.clock.now());
        let out = Outgoing { link, client, topic: GRAVE, name: &name, now, name_carrier: &name_carrier };
        let ready = settle::bury(&out, landed).await;
        settle::remember(&mut self.reader(topic).air().memory, &ready);
        self.end(topic, ready).await
    }

    async fn check(&self) -> Result<Vec<Found>, Error> {
        let client = self.producer().client().clone();
        let names = Topic::ALL
            .into_iter()
            .flat_map(|topic| [self.names.topic(topic), self.names.dead_letters(topic)]);
        let mut found = Vec::new();
        for topic in names {
            let (link, group) = (self.link.clone(), String::new());
            let brokers =
                brokers_of(&Source { link, client: client.clone(), topic: topic.clone(), group }).await?;
            found.push(Found { topic, brokers: brokers.len() });
        }
        Ok(found)
    }

    async fn close(&self) {
        join_all(Topic::ALL.map(|topic| self.give_back(topic))).await;
        let readers = self.readers.iter().filter_map(|reader| reader.session.get());
        join_all(readers.chain(self.producer.get()).map(Session::end)).await;
    }

    async fn give_back(&self, topic: Topic) {
        let unread = self.reader(topic).polls.lock().await.end().await;
        if !unread.is_empty() {
            settle::hand_back(&self.source(topic), unread.into_iter().map(Arrival::named)).await;
        }
    }
}

/// Begins no polls any more, and waits until nothing of them is left, but not for ever: whoever should consume may be busy.
pub(crate) async fn wind_down(polls: &tokio::sync::Mutex<Polls>) {
    let over = async {
        let open = polls.lock().await.wind_down();
        open.closed().await;
    };
    let _waited = timeout(POLL_DEADLINE, over).await;
}

impl Reader {
    fn air(&self) -> MutexGuard<'_, Air> {
        self.air.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands out a carrier's messages, except those that have had their end.
fn take(memory: &Memory, arrival: Arrival, token: i64, deliveries: &mut Vec<Delivery>) -> Flight<Ticket> {
    let Arrival { carrier, handle, messages, attempts, published_at } = arrival;
    let Known { ends, uncounted } = memory.of(&carrier, messages.len());
    let attempts = attempts.saturating_sub(uncounted).max(1);
    for (index, message) in messages.iter().enumerate().filter(|(index, _)| ends[*index].is_none()) {
        let index = u32::try_from(index).expect("a carrier holds few messages");
        let receipt = Receipt { carrier: carrier.clone(), token, index };
        deliveries.push(Delivery { receipt, message: message.clone(), attempts, published_at });
    }
    Flight { messages, ends, ticket: Ticket { handle } }
}

impl Bus for RocketBus {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            order: Order::Key,
            foresight: false,
            shortest_lease: SHORTEST_LEASE,
            lateness: LATENESS,
        }
    }

    fn publish(&self, topic: Topic, messages: Vec<Message>) -> Answer<'_, Vec<Published>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { Ok(inner.publish(topic, messages).await) }))
    }

    fn consume(&self, topic: Topic, _limit: u32, lease: Millis) -> Answer<'_, Vec<Delivery>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.consume(topic, lease).await }))
    }

    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_runtime(async move { inner.settle(topic, settlements).await }))
    }

    /// A broker does not know; `consume` waits.
    fn next_delivery(&self, _topic: Topic) -> Answer<'_, Option<Timestamp>> {
        Box::pin(std::future::ready(Ok(Some(Timestamp(0)))))
    }
}
