//! Consuming: one long poll per broker, always under way while somebody consumes.
//!
//! The broker has no other way to say that something came: a poll waits at the broker for at least five seconds. So
//! `consume` waits for the poll for a moment only and leaves it under way; the next `consume` finds what it brought.
//! Invariants: a poll is never cut off, because the broker would give its messages to nobody: a bus that closes lets its
//! polls end, and hands back what they bring. What
//! a poll brought so long ago that its lease is half over is left to come again; what is no carrier of ours is handed
//! on as one message, so that its reader can set it aside (FS-08).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::carrier;
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::bus::Message;
use onceward_domain::time::{Millis, Timestamp};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::failure::{self, NOTHING_THERE};
use crate::link::{ClientName, Link, named};
use crate::proto;
use crate::publish::{CARRIER_MARK, CARRIER_VERSION};
use crate::session::{everything, seconds};

/// How long one `consume` waits. It bounds how long a worker takes to notice that it is to stop.
pub(crate) const CONSUME_WAIT: Duration = Duration::from_secs(1);
/// How long a poll waits at the broker. A broker takes 5 to 20 s. The shortest: for so long a bus that closes waits, and a
/// broker gives messages to a reader that was killed.
const POLL: Duration = Duration::from_secs(5);
/// The call's deadline: longer than the poll, or the proxy refuses it.
const POLL_DEADLINE: Duration = Duration::from_secs(10);
/// Most carriers of one poll: the broker's limit.
const POLL_BATCH: i32 = 32;
/// The broker refuses shorter leases.
pub(crate) const SHORTEST_LEASE: Millis = Millis(10_000);
/// The broker refuses longer leases.
const LONGEST_LEASE: Millis = Millis(12 * 3_600_000);
/// How long a topic's brokers are believed to be the same.
const ROUTE_AGE: Duration = Duration::from_secs(30);

/// Where to poll, and as whom.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) link: Link,
    pub(crate) client: ClientName,
    /// The topic's name.
    pub(crate) topic: String,
    /// The group's name.
    pub(crate) group: String,
}

/// One of the broker's messages, as far as we need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The carrier's name: the same at every delivery.
    pub(crate) carrier: Arc<str>,
    /// Names this delivery.
    pub(crate) handle: String,
    /// Our messages in it.
    pub(crate) messages: Vec<Message>,
    /// The how-manieth delivery it is.
    pub(crate) attempts: u32,
    /// When the broker stored it.
    pub(crate) published_at: Timestamp,
}

/// The polls of one topic.
#[derive(Default)]
pub(crate) struct Polls {
    /// The topic's brokers; each wants a poll of its own.
    brokers: BTreeSet<String>,
    /// When they were learnt.
    routed: Option<Instant>,
    /// Those at which a poll is under way.
    polled: BTreeSet<String>,
    running: JoinSet<PollEnd>,
    /// Attempts whose answers were lost, by broker. Asked again under its name, a broker that gives in order gives what
    /// it gave, instead of holding it back until its lease is over.
    lost: BTreeMap<String, String>,
}

struct PollEnd {
    broker: String,
    attempt: String,
    at: Instant,
    outcome: Result<Vec<proto::Message>, Error>,
}

impl Polls {
    /// Waits this long for messages at most; starts polls where none is under way.
    pub(crate) async fn consume(
        &mut self,
        source: &Source,
        lease: Millis,
        wait: Duration,
        name_attempt: &(dyn Fn() -> String + Sync),
    ) -> Result<Vec<Arrival>, Error> {
        let lease = Millis(lease.0.clamp(SHORTEST_LEASE.0, LONGEST_LEASE.0));
        if self.routed.is_none_or(|at| at.elapsed() > ROUTE_AGE) {
            self.brokers = brokers_of(source).await?;
            self.routed = Some(Instant::now());
        }
        if self.running.is_empty() {
            self.polled.clear();
        }
        for broker in self.brokers.difference(&self.polled) {
            let attempt = self.lost.remove(broker).unwrap_or_else(name_attempt);
            self.running.spawn(poll(source.clone(), broker.clone(), attempt, lease));
        }
        self.polled.extend(self.brokers.iter().cloned());
        let Ok(first) = timeout(wait, self.running.join_next()).await else { return Ok(Vec::new()) };
        let mut ended = Vec::from_iter(first);
        while let Some(next) = self.running.try_join_next() {
            ended.push(next);
        }
        // A poll that panicked is no poll any more; its broker is polled again when the others have ended.
        self.gather(ended.into_iter().flatten(), lease)
    }

    fn gather(&mut self, ended: impl Iterator<Item = PollEnd>, lease: Millis) -> Result<Vec<Arrival>, Error> {
        let (mut arrivals, mut trouble) = (Vec::new(), None);
        for PollEnd { broker, attempt, at, outcome } in ended {
            self.polled.remove(&broker);
            match outcome {
                Ok(messages) if is_fresh(at, lease) => {
                    arrivals.extend(messages.into_iter().filter_map(arrival))
                }
                Ok(messages) => {
                    tracing::warn!(target: "onceward", event = "broker.poll_stale", messages = messages.len());
                }
                Err(error) => {
                    self.lost.insert(broker, attempt);
                    trouble = Some(error);
                }
            }
        }
        match trouble {
            Some(error) if arrivals.is_empty() => {
                self.routed = None;
                Err(error)
            }
            _ => Ok(arrivals),
        }
    }

    /// Lets the polls under way come to their end, and begins none; gives what they bring. Takes as long as a poll.
    pub(crate) async fn end(&mut self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        while let Some(ended) = self.running.join_next().await {
            // A poll that failed or panicked brings nothing.
            let brought = ended.ok().and_then(|end| end.outcome.ok()).unwrap_or_default();
            arrivals.extend(brought.into_iter().filter_map(arrival));
        }
        arrivals
    }
}

/// Whether at least half of the lease is left of what a poll brought at this time.
fn is_fresh(at: Instant, lease: Millis) -> bool {
    at.elapsed() < Duration::from_millis(lease.0.unsigned_abs()) / 2
}

/// The brokers on which a topic has queues to read.
pub(crate) async fn brokers_of(source: &Source) -> Result<BTreeSet<String>, Error> {
    const DOING: &str = "asking for a topic's queues";
    let answer = source.link.route(&source.client, source.topic.clone()).await;
    let answer = answer.map_err(|status| failure::unavailable(DOING, &status))?;
    failure::expect_done(DOING, answer.status.as_ref())?;
    let may_read = |queue: &proto::MessageQueue| {
        matches!(queue.permission(), proto::Permission::Read | proto::Permission::ReadWrite)
    };
    let queues = answer.message_queues.into_iter().filter(may_read);
    let brokers: BTreeSet<String> =
        queues.filter_map(|queue| queue.broker).map(|broker| broker.name).collect();
    if brokers.is_empty() {
        return Err(Error::new(Code::Unavailable, format!("{DOING}: {} has none to read", source.topic)));
    }
    Ok(brokers)
}

async fn poll(source: Source, broker: String, attempt: String, lease: Millis) -> PollEnd {
    const DOING: &str = "receiving messages";
    let queue = proto::MessageQueue {
        topic: Some(named(source.topic.clone())),
        broker: Some(proto::Broker { name: broker.clone(), id: 0 }),
        ..proto::MessageQueue::default()
    };
    let request = proto::ReceiveMessageRequest {
        group: Some(named(source.group.clone())),
        message_queue: Some(queue),
        filter_expression: Some(everything()),
        batch_size: POLL_BATCH,
        invisible_duration: Some(seconds(Duration::from_millis(lease.0.unsigned_abs()))),
        auto_renew: false,
        long_polling_timeout: Some(seconds(POLL)),
        attempt_id: Some(attempt.clone()),
    };
    let outcome = match source.link.receive(&source.client, POLL_DEADLINE, request).await {
        Ok((Some(status), _)) if status.code == NOTHING_THERE => Ok(Vec::new()),
        Ok((status, messages)) => failure::expect_done(DOING, status.as_ref()).map(|()| messages),
        Err(status) => Err(failure::unavailable(DOING, &status)),
    };
    PollEnd { broker, attempt, at: Instant::now(), outcome }
}

/// What a broker's message brings. One without a handle cannot be settled, and comes again.
fn arrival(wire: proto::Message) -> Option<Arrival> {
    let is_ours = wire.user_properties.get(CARRIER_MARK).is_some_and(|version| version == CARRIER_VERSION);
    let properties = wire.system_properties?;
    let messages = is_ours.then(|| carrier::unpack(&wire.body).ok()).flatten();
    let messages = messages.unwrap_or_else(|| {
        let id = properties.keys.first().unwrap_or(&properties.message_id);
        let key = properties.message_group.as_deref().unwrap_or_default();
        vec![Message { id: Arc::from(id.as_str()), key: Arc::from(key), payload: wire.body }]
    });
    let stored = properties.store_timestamp.or(properties.born_timestamp).unwrap_or_default();
    Some(Arrival {
        carrier: Arc::from(properties.message_id.as_str()),
        handle: properties.receipt_handle?,
        messages,
        attempts: properties.delivery_attempt.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1),
        published_at: Timestamp(
            stored.seconds.saturating_mul(1_000).saturating_add(i64::from(stored.nanos / 1_000_000)),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(mark: Option<&str>, body: Vec<u8>) -> proto::Message {
        proto::Message {
            topic: None,
            user_properties: mark
                .map(|version| (CARRIER_MARK.to_owned(), version.to_owned()))
                .into_iter()
                .collect(),
            system_properties: Some(proto::SystemProperties {
                keys: vec!["their-key".to_owned()],
                message_id: "carrier".to_owned(),
                receipt_handle: Some("handle".to_owned()),
                store_timestamp: Some(proto::Timestamp { seconds: 7, nanos: 9_999_999 }),
                ..proto::SystemProperties::default()
            }),
            body,
        }
    }

    #[test]
    fn fs_08_what_is_no_carrier_of_ours_is_handed_on_whole() {
        let ours = Message { id: "a".into(), key: "k".into(), payload: vec![1] };
        let body = carrier::pack(std::slice::from_ref(&ours));
        let whole = |body: &[u8]| Message { id: "their-key".into(), key: "".into(), payload: body.to_vec() };
        let table = [
            (Some("1"), body.clone(), ours),
            (Some("2"), body.clone(), whole(&body)),
            (None, body.clone(), whole(&body)),
            (Some("1"), body[1..].to_vec(), whole(&body[1..])),
            (None, b"{}".to_vec(), whole(b"{}")),
        ];
        for (mark, body, expected) in table {
            let arrival = arrival(wire(mark, body)).unwrap();
            assert_eq!(arrival.messages, [expected], "{mark:?}");
            assert_eq!((arrival.attempts, arrival.published_at), (1, Timestamp(7_009)));
        }
    }

    #[test]
    fn what_cannot_be_settled_is_left_to_come_again() {
        let mut bare = wire(Some("1"), Vec::new());
        bare.system_properties.as_mut().unwrap().receipt_handle = None;
        assert_eq!(arrival(bare), None);
        assert_eq!(arrival(proto::Message::default()), None);
    }
}
