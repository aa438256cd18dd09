//! Publishing: from our messages to carriers, and from the broker's answers back to one outcome per message.
//!
//! A broker's work is by its message, ours are small: hundreds of them go into one. Invariants: every message is in
//! exactly one carrier; messages of one key of an ordered topic are always in the same shard, in their order, and a
//! shard's carriers leave one after the other, so that none overtakes; where one of them is not acknowledged, those
//! behind it are not sent. Everything else is on its way at once.
//!
//! The shards are why `SHARDS` must not change while events are under way: their keys would move.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};
use onceward_domain::carrier;
use onceward_domain::ports::bus::{Message, Published, Topic};
use onceward_domain::time::Timestamp;

use crate::failure::{Verdict, judge_answer};
use crate::link::{ClientName, Link, named};
use crate::proto;

/// Most messages in one carrier. Their ids are the carrier's keys, of which a broker takes 16 KiB.
pub(crate) const CARRIER_LIMIT: usize = 256;
/// Bytes after which a carrier is full. A broker takes 4 MiB by default.
const CARRIER_BYTES: usize = 1 << 20;
/// The longest message that is sent at all: the broker's limit, with room for what is around it.
const MESSAGE_BYTES_LIMIT: usize = (4 << 20) - (64 << 10);
/// Bytes of keys after which a carrier is full.
const KEY_BYTES: usize = 12 << 10;
/// Most carriers on their way at once.
const SENDS_IN_FLIGHT: usize = 32;
/// Message groups of an ordered topic. More would make smaller carriers, fewer would block more behind one message.
const SHARDS: u64 = 16;

/// The property by which a carrier of ours is known.
pub(crate) const CARRIER_MARK: &str = "onceward-carrier";
/// The version of its body that this build writes and reads.
pub(crate) const CARRIER_VERSION: &str = "1";

/// Carriers that leave one after the other; each is the places of its messages in the batch.
type Sequence = Vec<Vec<usize>>;

/// What one publish goes through.
pub(crate) struct Outgoing<'a> {
    pub(crate) link: &'a Link,
    pub(crate) client: &'a ClientName,
    pub(crate) topic: Topic,
    /// The topic's name at the broker.
    pub(crate) name: &'a str,
    pub(crate) now: Timestamp,
    /// Gives a carrier a name that nobody else has.
    pub(crate) name_carrier: &'a (dyn Fn() -> String + Sync),
}

/// Sends a batch; one outcome per message, in order.
pub(crate) async fn publish(out: &Outgoing<'_>, messages: &[Message]) -> Vec<Published> {
    let (sequences, mut outcomes) = plan(out.topic, messages);
    let mut sent = stream::iter(sequences)
        .map(|sequence| send_in_turn(out, messages, sequence))
        .buffer_unordered(SENDS_IN_FLIGHT);
    while let Some(of_sequence) = sent.next().await {
        for (place, outcome) in of_sequence {
            outcomes[place] = outcome;
        }
    }
    outcomes
}

/// Sends carriers one after the other, until one is not acknowledged.
async fn send_in_turn(
    out: &Outgoing<'_>,
    messages: &[Message],
    sequence: Sequence,
) -> Vec<(usize, Published)> {
    let mut outcomes = Vec::new();
    let mut before = Published::Acked;
    for places in sequence {
        let outcome = match before {
            Published::Acked => send(out, messages, &places).await,
            // It was not sent, so that it does not overtake.
            Published::Unknown | Published::Rejected => Published::Rejected,
            Published::Busy => Published::Busy,
        };
        if outcome != Published::Acked {
            before = outcome;
        }
        outcomes.extend(places.into_iter().map(|place| (place, outcome)));
    }
    outcomes
}

async fn send(out: &Outgoing<'_>, messages: &[Message], places: &[usize]) -> Published {
    let load: Vec<Message> = places.iter().map(|place| messages[*place].clone()).collect();
    let group = match out.topic {
        Topic::OrderCreate => None,
        Topic::Events => load.first().map(|first| shard_of(&first.key)),
    };
    let wire = wire(out, &load, group);
    let answer = out.link.send(out.client, wire).await;
    let verdict = judge_answer(&answer);
    if verdict != Verdict::Done {
        let topic = out.name;
        let messages = load.len();
        tracing::warn!(target: "onceward", event = "broker.send_failed", topic, messages, ?verdict, ?answer);
    }
    match verdict {
        Verdict::Done => Published::Acked,
        Verdict::Refused => Published::Rejected,
        Verdict::Busy => Published::Busy,
        Verdict::Perhaps => Published::Unknown,
    }
}

/// The broker's message that carries these of ours.
pub(crate) fn wire(out: &Outgoing<'_>, load: &[Message], group: Option<String>) -> proto::Message {
    let kind = if group.is_some() { proto::MessageType::Fifo } else { proto::MessageType::Normal };
    proto::Message {
        topic: Some(named(out.name.to_owned())),
        user_properties: [(CARRIER_MARK.to_owned(), CARRIER_VERSION.to_owned())].into(),
        system_properties: Some(proto::SystemProperties {
            keys: load.iter().filter(|one| is_key(&one.id)).map(|one| one.id.to_string()).collect(),
            message_id: (out.name_carrier)(),
            body_encoding: proto::Encoding::Identity.into(),
            message_type: kind.into(),
            born_timestamp: Some(timestamp(out.now)),
            message_group: group,
            ..proto::SystemProperties::default()
        }),
        body: carrier::pack(load),
    }
}

/// A point in time, as the protocol has it.
pub(crate) fn timestamp(at: Timestamp) -> proto::Timestamp {
    let nanos = i32::try_from(at.0.rem_euclid(1_000) * 1_000_000).expect("below a thousand million");
    proto::Timestamp { seconds: at.0.div_euclid(1_000), nanos }
}

/// Whether the broker takes this as a key. One that it would not is in the body all the same.
fn is_key(id: &str) -> bool {
    !id.is_empty() && !id.chars().any(|one| one.is_control() || one.is_whitespace())
}

/// Puts messages into carriers, and carriers into sequences. The outcomes are `Rejected` where a message goes nowhere.
fn plan(topic: Topic, messages: &[Message]) -> (Vec<Sequence>, Vec<Published>) {
    let mut outcomes = vec![Published::Unknown; messages.len()];
    let mut shards: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, message) in messages.iter().enumerate() {
        if size_of(message) > MESSAGE_BYTES_LIMIT {
            outcomes[place] = Published::Rejected;
            continue;
        }
        let shard = match topic {
            Topic::OrderCreate => 0,
            Topic::Events => shard_number(&message.key),
        };
        shards.entry(shard).or_default().push(place);
    }
    let loads = shards.into_values().map(|places| fill(messages, places));
    let sequences = match topic {
        // No order to keep: each carrier goes by itself.
        Topic::OrderCreate => loads.flatten().map(|carrier| vec![carrier]).collect(),
        Topic::Events => loads.collect(),
    };
    (sequences, outcomes)
}

/// Cuts a row of messages into carriers that the broker takes.
fn fill(messages: &[Message], places: Vec<usize>) -> Sequence {
    let mut carriers = Sequence::new();
    let (mut bytes, mut keys) = (0, 0);
    for place in places {
        let message = &messages[place];
        bytes += size_of(message);
        keys += message.id.len() + 1;
        let is_full = carriers
            .last()
            .is_none_or(|last| last.len() >= CARRIER_LIMIT || bytes > CARRIER_BYTES || keys > KEY_BYTES);
        if is_full {
            carriers.push(Vec::new());
            (bytes, keys) = (size_of(message), message.id.len() + 1);
        }
        if let Some(last) = carriers.last_mut() {
            last.push(place);
        }
    }
    carriers
}

fn size_of(message: &Message) -> usize {
    message.id.len() + message.key.len() + message.payload.len() + 8
}

/// The message group of a key. Hashing makes any key fit into the broker's 64 bytes.
fn shard_of(key: &str) -> String {
    format!("shard-{:02}", shard_number(key))
}

/// FNV-1a: the same on every node and in every version, which the standard library's hash does not promise.
fn shard_number(key: &str) -> u64 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, key: &str, length: usize) -> Message {
        Message { id: id.into(), key: key.into(), payload: vec![b'x'; length] }
    }

    fn places(sequences: &[Sequence]) -> Vec<usize> {
        let mut places: Vec<usize> = sequences.iter().flatten().flatten().copied().collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn fs_05_every_message_is_in_one_carrier_and_no_carrier_is_too_full() {
        let long = "i".repeat(1_000);
        let tables: [(&str, Vec<Message>); 4] = [
            ("many", (0..1_000).map(|number| message(&format!("{number}"), "k", 10)).collect()),
            ("heavy", (0..10).map(|number| message(&format!("{number}"), "k", CARRIER_BYTES / 3)).collect()),
            ("long ids", (0..50).map(|_| message(&long, "k", 1)).collect()),
            ("none", Vec::new()),
        ];
        for (name, messages) in tables {
            for topic in Topic::ALL {
                let (sequences, outcomes) = plan(topic, &messages);
                assert_eq!(outcomes, vec![Published::Unknown; messages.len()]);
                assert_eq!(places(&sequences), (0..messages.len()).collect::<Vec<_>>(), "{name} {topic:?}");
                for carrier in sequences.iter().flatten() {
                    let of = |size: fn(&Message) -> usize| {
                        carrier.iter().map(|one| size(&messages[*one])).sum::<usize>()
                    };
                    assert!((1..=CARRIER_LIMIT).contains(&carrier.len()), "{name}");
                    assert!(
                        of(size_of) <= CARRIER_BYTES && of(|one| one.id.len() + 1) <= KEY_BYTES,
                        "{name}"
                    );
                }
            }
        }
    }

    #[test]
    fn fs_11_a_key_is_in_one_sequence_in_its_order() {
        let messages: Vec<_> =
            (0..3_000).map(|number| message("i", &format!("key{}", number % 70), 1)).collect();
        let (sequences, _) = plan(Topic::Events, &messages);
        assert_eq!(sequences.len(), usize::try_from(SHARDS).unwrap());
        for sequence in &sequences {
            assert!(sequence.iter().flatten().is_sorted());
            let group = shard_of(&messages[sequence[0][0]].key);
            assert!(sequence.iter().flatten().all(|place| shard_of(&messages[*place].key) == group));
            assert!(group.len() < 64);
        }
        let (sequences, _) = plan(Topic::OrderCreate, &messages);
        assert!(
            sequences.iter().all(|sequence| sequence.len() == 1),
            "nothing waits where there is no order"
        );
    }

    #[test]
    fn se_04_a_message_that_no_broker_takes_is_refused_alone() {
        let messages = [message("a", "k", 1), message("b", "k", MESSAGE_BYTES_LIMIT), message("c", "k", 1)];
        let (sequences, outcomes) = plan(Topic::OrderCreate, &messages);
        assert_eq!(places(&sequences), [0, 2]);
        assert_eq!(outcomes, [Published::Unknown, Published::Rejected, Published::Unknown]);
    }

    #[test]
    fn shards_are_where_they_have_always_been() {
        let known = [("", 5), ("a", 12), ("onceward", 14)];
        for (key, shard) in known {
            assert_eq!(shard_number(key), shard, "{key}");
        }
    }
}
