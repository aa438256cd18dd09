//! Every promise of the `Bus` port, over a real broker (EM-02).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod real;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onceward_domain::ports::bus::{Bus, Message, Published, Settlement, Topic};
use onceward_domain::ports::clock::Clock;
use onceward_domain::time::{Millis, Timestamp};
use onceward_rocketmq::RocketBus;
use onceward_testkit::conformance::bus::{self, Served};
use onceward_testkit::ids::CountingIds;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// The machine's time, which is the broker's as well.
struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

#[expect(clippy::disallowed_methods, reason = "a real broker stamps messages with the machine's time")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    Timestamp(i64::try_from(since.as_millis()).expect("it is earlier than the year 200,000,000"))
}

#[test]
fn em_02_a_real_broker_keeps_every_promise() {
    let runtime = Runtime::new().unwrap();
    let grounds = Mutex::new(Vec::new());
    bus::run_all_served(&|case| {
        let ground = real::Ground::new(case);
        let _inside = runtime.enter();
        let bus = RocketBus::open(&ground.options, Arc::new(MachineClock), Arc::new(CountingIds::new(case)))
            .unwrap();
        grounds.lock().unwrap().push(ground);
        Served { bus: Arc::new(bus), now }
    });
}

/// Much longer than a test waits for a message: nothing comes because a lease is over.
const LEASE: Millis = Millis(600_000);
/// How long everything may take that was published. A broker gives out late, and more lazily while nothing moves.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn fs_06_a_real_broker_keeps_nothing_for_a_reader_that_has_closed() {
    let runtime = Runtime::new().unwrap();
    let successions = Topic::ALL.map(|topic| runtime.spawn(succession(topic)));
    for succession in successions {
        runtime.block_on(succession).unwrap();
    }
}

/// One reader closes, and what is published next comes to the next reader.
async fn succession(topic: Topic) {
    let name = format!("closing{}", topic.group());
    let ground = real::Ground::new(&name);
    let open = |reader: &str| {
        let ids = Arc::new(CountingIds::new(&format!("{name}{reader}")));
        RocketBus::open(&ground.options, Arc::new(MachineClock), ids).unwrap()
    };
    let first = open("first");
    publish(&first, topic, "before").await;
    come_all(&first, topic, "before").await;
    assert!(first.consume(topic, 100, LEASE).await.unwrap().is_empty(), "its next poll is under way");
    first.close().await;
    let next = open("next");
    publish(&next, topic, "after").await;
    come_all(&next, topic, "after").await;
    next.close().await;
}

/// One message for each of eight keys, so that each of the topic's queues has some.
fn messages(name: &str) -> Vec<Message> {
    let key = |number| Arc::from(format!("key-{number}"));
    let message = |number| Message {
        id: format!("{name}-{number}").into(),
        key: key(number),
        payload: Vec::from(name),
    };
    (0..8).map(message).collect()
}

async fn publish(bus: &RocketBus, topic: Topic, name: &str) {
    for message in messages(name) {
        assert_eq!(bus.publish(topic, vec![message]).await.unwrap(), [Published::Acked]);
    }
}

/// Waits until every message of this name has come, and acknowledges it.
async fn come_all(bus: &RocketBus, topic: Topic, name: &str) {
    let mut missing: BTreeSet<Arc<str>> = messages(name).into_iter().map(|message| message.id).collect();
    let coming = async {
        while !missing.is_empty() {
            let came = bus.consume(topic, 100, LEASE).await.unwrap();
            missing.retain(|id| !came.iter().any(|one| one.message.id == *id));
            let acks = came.into_iter().map(|one| Settlement::Ack(one.receipt)).collect();
            bus.settle(topic, acks).await.unwrap();
        }
    };
    let outcome = timeout(PATIENCE, coming).await;
    assert!(outcome.is_ok(), "{topic:?}: {missing:?} did not come");
}
