//! A broker in memory that speaks the same protocol, for what a healthy broker never shows: answers that are lost, lines
//! that break, groups that are set up wrongly. Compiled for tests only.
//!
//! Invariants: its time is a clock that the test moves; a fault happens to the next call of its kind, once. It knows
//! invisible time, redelivery, counted attempts, order by message group, attempts that are asked for again, and a cap
//! after which a message goes to the dead-letter topic. Deliberately absent: waiting; a poll that finds nothing says so at
//! once, because time stands still.

mod security;
mod service;
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::clock::ManualClock;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::proto;
use crate::proto::messaging_service_server::MessagingServiceServer;
use crate::publish::timestamp;

/// Calls to which something can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Send,
    Receive,
    Ack,
    ChangeLease,
    Telemetry,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is carried out, and the answer is lost.
    LoseAnswer,
    /// It does not arrive.
    LoseRequest,
    /// It is not carried out, and the answer says so with this code.
    Refuse(i32),
    /// It is carried out, and no answer ever comes.
    Hang,
    /// It is carried out when the test lets it.
    Wait,
}

/// One of the broker's messages.
struct Stored {
    message: proto::Message,
    stored_at: Timestamp,
    attempts: i32,
    /// Names its present delivery.
    handle: String,
    /// Nobody is given it before.
    visible_at: Timestamp,
    /// The attempt to receive that it was given to.
    given_to: Option<String>,
}

#[derive(Default)]
struct State {
    topics: BTreeMap<String, Vec<Stored>>,
    /// Groups that are given their messages in order.
    ordered: BTreeSet<String>,
    /// Clients that have introduced themselves.
    clients: BTreeSet<String>,
    faults: BTreeMap<Call, VecDeque<Fault>>,
    /// How many calls of a kind came.
    calls: BTreeMap<Call, usize>,
    handles: u64,
}

/// The broker.
pub(crate) struct FakeBroker {
    state: Mutex<State>,
    clock: Arc<ManualClock>,
    /// Changes when all telemetry lines break.
    lines: watch::Sender<u64>,
    /// Lets one call go on that waits.
    go: Notify,
}

/// Deliveries before the broker sets a message aside.
const MAX_ATTEMPTS: i32 = 33;

impl FakeBroker {
    /// A broker with these topics, and these ordered groups.
    pub(crate) fn new(clock: Arc<ManualClock>, topics: &[String], ordered: &[String]) -> Arc<Self> {
        let state = State {
            topics: topics.iter().map(|topic| (topic.clone(), Vec::new())).collect(),
            ordered: ordered.iter().cloned().collect(),
            ..State::default()
        };
        Arc::new(Self { state: Mutex::new(state), clock, lines: watch::Sender::new(0), go: Notify::new() })
    }

    /// Serves on a free port, until the runtime ends or the handle is aborted.
    pub(crate) async fn serve(self: &Arc<Self>) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, self.serve_on(listener))
    }

    /// Serves on this port.
    pub(crate) fn serve_on(self: &Arc<Self>, listener: TcpListener) -> tokio::task::JoinHandle<()> {
        self.serve_by(Server::builder(), listener)
    }

    /// Serves on this port, by a server that is set up for it.
    fn serve_by(self: &Arc<Self>, mut server: Server, listener: TcpListener) -> tokio::task::JoinHandle<()> {
        let service = MessagingServiceServer::from_arc(Arc::clone(self));
        let incoming = TcpIncoming::from(listener);
        tokio::spawn(async move {
            drop(server.add_service(service).serve_with_incoming(incoming).await);
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens to the next call of this kind that nothing is to happen to yet.
    pub(crate) fn hurt(&self, call: Call, fault: Fault) {
        self.state().faults.entry(call).or_default().push_back(fault);
    }

    /// Lets one call go on that waits, or will.
    pub(crate) fn let_go(&self) {
        self.go.notify_one();
    }

    /// Breaks every telemetry line and forgets every client, as a broker that was started anew.
    pub(crate) fn forget_everybody(&self) {
        self.state().clients.clear();
        self.lines.send_modify(|times| *times += 1);
    }

    /// Makes a group give its messages in order, or not.
    pub(crate) fn set_ordered(&self, group: &str, is_ordered: bool) {
        let mut state = self.state();
        if is_ordered {
            state.ordered.insert(group.to_owned())
        } else {
            state.ordered.remove(group)
        };
    }

    /// How many calls of a kind came.
    pub(crate) fn calls(&self, call: Call) -> usize {
        self.state().calls.get(&call).copied().unwrap_or_default()
    }

    /// The bodies and keys of what a topic holds.
    pub(crate) fn content(&self, topic: &str) -> Vec<(Vec<u8>, Vec<String>)> {
        let state = self.state();
        let of = |stored: &Stored| {
            let properties = stored.message.system_properties.clone().unwrap_or_default();
            (stored.message.body.clone(), properties.keys)
        };
        state.topics.get(topic).map(|all| all.iter().map(of).collect()).unwrap_or_default()
    }

    /// Puts a message of somebody else's into a topic.
    pub(crate) fn put(&self, topic: &str, message: proto::Message) {
        let now = self.clock.now();
        self.state().put(topic, message, now);
    }

    fn next_fault(&self, call: Call) -> Option<Fault> {
        let mut state = self.state();
        *state.calls.entry(call).or_default() += 1;
        state.faults.get_mut(&call).and_then(VecDeque::pop_front)
    }
}

impl State {
    fn put(&mut self, topic: &str, message: proto::Message, now: Timestamp) -> bool {
        let Some(all) = self.topics.get_mut(topic) else { return false };
        let (handle, given_to) = (String::new(), None);
        let visible_at = delivery_of(&message).map_or(now, |at| at.max(now));
        all.push(Stored { message, stored_at: now, attempts: 0, handle, visible_at, given_to });
        true
    }

    /// Gives out what may be given out.
    fn take(&mut self, ask: &Ask<'_>) -> Vec<proto::Message> {
        let is_ordered = self.ordered.contains(ask.group);
        let all = self.topics.get_mut(ask.topic).map(std::mem::take).unwrap_or_default();
        let (mut given, mut kept, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        let mut blocked = BTreeSet::new();
        for mut stored in all {
            let properties = stored.message.system_properties.clone().unwrap_or_default();
            let group = properties.message_group.clone().unwrap_or_default();
            let is_again = is_ordered && stored.given_to.as_deref() == Some(ask.attempt);
            let is_free = stored.visible_at <= ask.now || is_again;
            let may_go = is_free && !(is_ordered && blocked.contains(&group)) && given.len() < ask.limit;
            if !may_go {
                blocked.insert(group);
                kept.push(stored);
                continue;
            }
            if stored.attempts >= MAX_ATTEMPTS {
                dead.push(stored.message);
                continue;
            }
            self.handles += 1;
            stored.attempts += i32::from(!is_again);
            stored.handle = format!("handle-{}", self.handles);
            stored.visible_at = ask.now.plus(ask.lease);
            stored.given_to = Some(ask.attempt.to_owned());
            given.push(stored.as_delivered());
            kept.push(stored);
        }
        self.topics.insert(ask.topic.to_owned(), kept);
        for message in dead {
            self.put(&format!("%DLQ%{}", ask.group), message, ask.now);
        }
        given
    }

    /// The message of this delivery, while its lease lasts.
    fn held(&mut self, topic: &str, handle: &str, now: Timestamp) -> Option<(usize, &mut Vec<Stored>)> {
        let all = self.topics.get_mut(topic)?;
        let place = all.iter().position(|stored| stored.handle == handle && stored.visible_at > now)?;
        Some((place, all))
    }
}

/// When a delayed message comes: a broker's wheel has notches of a second, and gives what lies between them early.
fn delivery_of(message: &proto::Message) -> Option<Timestamp> {
    const NOTCH: i64 = 1_000;
    let at = message.system_properties.as_ref()?.delivery_timestamp.as_ref()?;
    Some(Timestamp((at.seconds * 1_000 + i64::from(at.nanos / 1_000_000)) / NOTCH * NOTCH))
}

/// What a poll asks for.
struct Ask<'a> {
    topic: &'a str,
    group: &'a str,
    attempt: &'a str,
    limit: usize,
    lease: Millis,
    now: Timestamp,
}

impl Stored {
    fn as_delivered(&self) -> proto::Message {
        let mut message = self.message.clone();
        let properties = message.system_properties.get_or_insert_default();
        properties.receipt_handle = Some(self.handle.clone());
        properties.delivery_attempt = Some(self.attempts);
        properties.store_timestamp = Some(timestamp(self.stored_at));
        message
    }
}
