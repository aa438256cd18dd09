//! One poll: what a broker is asked for, and what it brings. Read next: `polls.rs`.
//!
//! Invariants: an arrival names what it takes to settle it; what is no carrier of ours is handed on as one message, so that its reader
//! can set it aside (FS-08).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use onceward_domain::carrier;
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::bus::Message;
use onceward_domain::time::{Millis, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

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
pub(crate) const POLL_DEADLINE: Duration = Duration::from_secs(10);
/// Most carriers of one poll: the broker's limit.
pub(crate) const POLL_BATCH: i32 = 32;
/// The broker refuses shorter leases.
pub(crate) const SHORTEST_LEASE: Millis = Millis(10_000);
/// The broker refuses longer leases.
const LONGEST_LEASE: Millis = Millis(12 * 3_600_000);

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

impl Arrival {
    /// Its carrier's name and its delivery's handle.
    pub(crate) fn named(self) -> (Arc<str>, String) {
        (self.carrier, self.handle)
    }
}

/// How a poll has ended.
pub(crate) struct PollEnd {
    pub(crate) broker: String,
    /// What it was called at the broker.
    pub(crate) attempt: String,
    /// When it ended.
    pub(crate) at: Instant,
    pub(crate) outcome: Result<Vec<proto::Message>, Error>,
    /// Held until it was looked at.
    pub(crate) open: watch::Receiver<()>,
}

/// A lease as brokers take it.
pub(crate) fn lease_of(lease: Millis) -> Millis {
    Millis(lease.0.clamp(SHORTEST_LEASE.0, LONGEST_LEASE.0))
}

/// Asks one broker, which answers as soon as it has something.
pub(crate) async fn poll(
    source: Source,
    broker: String,
    attempt: String,
    lease: Millis,
    open: watch::Receiver<()>,
) -> PollEnd {
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
    PollEnd { broker, attempt, at: Instant::now(), outcome, open }
}

/// What a broker's message brings. One without a handle cannot be settled, and comes again.
pub(crate) fn arrival(wire: proto::Message) -> Option<Arrival> {
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
