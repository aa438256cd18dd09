//! Settling: what becomes of a carrier when the last of its messages has its end.
//!
//! Invariants: dead messages are in the group's dead-letter topic, acknowledged, before their carrier is taken off the
//! broker; a carrier some of whose messages are to come again comes again as a whole, and those that have had their end
//! are not handed out a second time by this bus. Another process hands them out, and the inbox recognises them. What the
//! broker does not confirm comes again after its lease. A broker counts every delivery, so those that were handed back untried
//! are remembered and taken off its count, by this process and while it lives. Deliberately absent: extending a lease.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use onceward_domain::error::Error;
use onceward_domain::flight::{End, Flight};
use onceward_domain::ports::bus::{Message, Published, Topic};
use onceward_domain::time::Millis;
use tokio::time::timeout;

use crate::consume::Source;
use crate::failure::{self, LEASE_LOST, Verdict, judge};
use crate::link::named;
use crate::proto;
use crate::publish::{Outgoing, publish};
use crate::session::seconds;

/// Most carriers whose settled messages are remembered.
const MEMORY_LIMIT: usize = 1_024;

/// How soon a carrier comes again that nobody has looked at.
const UNREAD_WAIT: Millis = Millis(1_000);
/// Most carriers that are handed back at once.
const RETURNS_IN_FLIGHT: usize = 32;
/// How long handing back may take.
const RETURNS_PATIENCE: Duration = Duration::from_secs(4);

/// What is needed to settle a carrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Names the delivery towards the broker.
    pub(crate) handle: String,
}

/// A carrier whose last message has its end.
pub(crate) type Landed = (Arc<str>, i64, Flight<Ticket>);

/// What is known of carriers that come again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: BTreeMap<Arc<str>, Known>,
    order: VecDeque<Arc<str>>,
}

/// What is known of one carrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Which of its messages have had their end.
    pub(crate) ends: Vec<Option<End>>,
    /// Deliveries that do not count.
    pub(crate) uncounted: u32,
}

impl Memory {
    /// What is known of a carrier of so many messages.
    pub(crate) fn of(&self, carrier: &str, count: usize) -> Known {
        let known = self.known.get(carrier).filter(|known| known.ends.len() == count);
        known.cloned().unwrap_or_else(|| Known { ends: vec![None; count], uncounted: 0 })
    }

    /// Remembers who needs not come again, and whether this delivery counts.
    fn note(&mut self, carrier: &Arc<str>, flight: &Flight<Ticket>) {
        let final_only = flight
            .ends
            .iter()
            .map(|end| end.filter(|end| !matches!(end, End::Retry(_) | End::HandBack(_))))
            .map(|end| end.map(|_| End::Ack));
        let before = self.of(carrier, flight.ends.len()).uncounted;
        let uncounted = before + u32::from(!flight.counts());
        self.keep(carrier, Known { ends: final_only.collect(), uncounted });
    }

    /// Remembers that a delivery does not count, because nobody has looked at it.
    pub(crate) fn note_unread(&mut self, carrier: &Arc<str>, count: usize) {
        let Known { ends, uncounted } = self.of(carrier, count);
        self.keep(carrier, Known { ends, uncounted: uncounted + 1 });
    }

    fn keep(&mut self, carrier: &Arc<str>, known: Known) {
        if self.known.insert(carrier.clone(), known).is_none() {
            self.order.push_back(carrier.clone());
        }
        while self.order.len() > MEMORY_LIMIT {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    pub(crate) fn forget(&mut self, carrier: &str) {
        if self.known.remove(carrier).is_some() {
            self.order.retain(|one| &**one != carrier);
        }
    }
}

/// Puts the dead messages of landed carriers where dead letters go; gives back the carriers that may be ended now.
pub(crate) async fn bury(out: &Outgoing<'_>, landed: Vec<Landed>) -> Vec<Landed> {
    let (mut ready, mut graves) = (Vec::new(), Vec::new());
    for one in landed {
        let dead: Vec<Message> = one.2.ended(|end| end == End::Dead).cloned().collect();
        if dead.is_empty() {
            ready.push(one);
        } else {
            graves.push((one, dead));
        }
    }
    // One letter each, so that a person sees and replays one at a time.
    let buried = graves.into_iter().map(|(one, dead)| async move {
        let letters = dead.iter().map(|letter| publish(out, std::slice::from_ref(letter)));
        let is_buried =
            join_all(letters).await.into_iter().flatten().all(|outcome| outcome == Published::Acked);
        is_buried.then_some(one)
    });
    let mut buried: Vec<Landed> = join_all(buried).await.into_iter().flatten().collect();
    ready.append(&mut buried);
    ready
}

/// The topic's kind has no meaning for its dead letters: they have no order.
pub(crate) const GRAVE: Topic = Topic::OrderCreate;

/// Notes what needs not come again. Before the broker is told, so that the carrier cannot come back unrecognised.
pub(crate) fn remember(memory: &mut Memory, landed: &[Landed]) {
    landed.iter().for_each(|(carrier, _, flight)| memory.note(carrier, flight));
}

/// Those of landed carriers that do not come again once the broker has confirmed it.
pub(crate) fn done_with(landed: &[Landed]) -> Vec<Arc<str>> {
    landed
        .iter()
        .filter(|(_, _, flight)| flight.wait().is_none())
        .map(|(carrier, ..)| carrier.clone())
        .collect()
}

/// Ends carriers at the broker, or sets the time of their return, all at once.
///
/// # Errors
/// Where the broker did not confirm; the carriers come again after their lease.
pub(crate) async fn end(source: &Source, landed: Vec<Landed>) -> Result<(), Error> {
    let mut entries = Vec::new();
    let mut returns = Vec::new();
    for (carrier, _, flight) in landed {
        match flight.wait() {
            None => entries.push(proto::AckMessageEntry {
                message_id: carrier.to_string(),
                receipt_handle: flight.ticket.handle,
            }),
            Some(wait) => returns.push(come_again(source, carrier.to_string(), flight.ticket.handle, wait)),
        }
    }
    let (acked, returned) = tokio::join!(ack(source, entries), join_all(returns));
    returned.into_iter().fold(acked, |first, next| first.and(next))
}

/// Ends one carrier; answers whether its lease still held.
///
/// # Errors
/// Where the broker did not confirm; the carrier comes again after its lease.
pub(crate) async fn end_one(source: &Source, carrier: &str, handle: String) -> Result<bool, Error> {
    const DOING: &str = "acknowledging a message";
    let entry = proto::AckMessageEntry { message_id: carrier.to_owned(), receipt_handle: handle };
    let request = proto::AckMessageRequest {
        group: Some(named(source.group.clone())),
        topic: Some(named(source.topic.clone())),
        entries: vec![entry],
    };
    let answer = source.link.ack(&source.client, request).await;
    let answer = answer.map_err(|status| failure::unavailable(DOING, &status))?;
    let status = answer.entries.first().and_then(|entry| entry.status.as_ref()).or(answer.status.as_ref());
    if status.is_some_and(|status| status.code == LEASE_LOST) {
        return Ok(false);
    }
    failure::expect_done(DOING, status).map(|()| true)
}

/// Has carriers come again soon, for everybody, that nobody will look at here. Each is its name and its delivery's handle.
/// One that the broker does not confirm in time comes again after its lease.
pub(crate) async fn hand_back(source: &Source, unread: impl IntoIterator<Item = (Arc<str>, String)>) {
    let returns = stream::iter(unread)
        .map(|(carrier, handle)| come_again(source, carrier.to_string(), handle, UNREAD_WAIT))
        .buffer_unordered(RETURNS_IN_FLIGHT);
    let refused = returns.filter_map(async |outcome| outcome.err()).collect::<Vec<Error>>();
    match timeout(RETURNS_PATIENCE, refused).await {
        Ok(refused) => {
            if let Some(error) = refused.first() {
                let (count, error) = (refused.len(), error.operator_text());
                tracing::warn!(target: "onceward", event = "broker.hand_back_failed", count, error);
            }
        }
        Err(_) => tracing::warn!(target: "onceward", event = "broker.hand_back_failed", "the broker is slow"),
    }
}

async fn ack(source: &Source, entries: Vec<proto::AckMessageEntry>) -> Result<(), Error> {
    const DOING: &str = "acknowledging messages";
    if entries.is_empty() {
        return Ok(());
    }
    let request = proto::AckMessageRequest {
        group: Some(named(source.group.clone())),
        topic: Some(named(source.topic.clone())),
        entries,
    };
    let answer = source.link.ack(&source.client, request).await;
    let answer = answer.map_err(|status| failure::unavailable(DOING, &status))?;
    for entry in &answer.entries {
        let status = entry.status.as_ref();
        let code = status.map_or(0, |status| status.code);
        // A lost lease is what the port expects: the message comes again, harmlessly.
        if judge(code) != Verdict::Done && code != LEASE_LOST {
            return failure::expect_done(DOING, status);
        }
    }
    if answer.entries.is_empty() { failure::expect_done(DOING, answer.status.as_ref()) } else { Ok(()) }
}

async fn come_again(source: &Source, carrier: String, handle: String, wait: Millis) -> Result<(), Error> {
    const DOING: &str = "having a message come again";
    let request = proto::ChangeInvisibleDurationRequest {
        group: Some(named(source.group.clone())),
        topic: Some(named(source.topic.clone())),
        receipt_handle: handle,
        invisible_duration: Some(seconds(Duration::from_millis(wait.0.unsigned_abs()))),
        message_id: carrier,
    };
    let answer = source.link.change_lease(&source.client, request).await;
    let answer = answer.map_err(|status| failure::unavailable(DOING, &status))?;
    match &answer.status {
        Some(status) if status.code == LEASE_LOST => Ok(()),
        status => failure::expect_done(DOING, status.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_keeps_final_ends_only_and_is_bounded() {
        let mut memory = Memory::default();
        let ends = [Some(End::Ack), Some(End::Retry(Millis(1))), Some(End::Dead), None];
        let flight = flight(ends);
        memory.note(&"first".into(), &flight);
        assert_eq!(memory.of("first", 4).ends, [Some(End::Ack), None, Some(End::Ack), None]);
        assert_eq!(memory.of("first", 3).ends, [None; 3], "another carrier of that name is not known");
        for number in 0..MEMORY_LIMIT {
            memory.note(&format!("{number}").into(), &flight);
        }
        assert_eq!(memory.of("first", 4).ends, [None; 4]);
        assert_eq!(memory.known.len(), MEMORY_LIMIT);
        memory.forget("7");
        assert_eq!((memory.known.len(), memory.order.len()), (MEMORY_LIMIT - 1, MEMORY_LIMIT - 1));
    }

    #[test]
    fn fs_16_a_delivery_that_was_handed_back_does_not_count() {
        let (back, retry) = (Some(End::HandBack(Millis(1))), Some(End::Retry(Millis(1))));
        let mut memory = Memory::default();
        let name: Arc<str> = "one".into();
        for (ends, uncounted) in [
            ([back, Some(End::Ack)], 1),
            ([back, back], 2),
            ([retry, back], 2),
            ([retry, Some(End::Ack)], 2),
            ([back, Some(End::Ack)], 3),
        ] {
            memory.note(&name, &flight(ends));
            assert_eq!(memory.of(&name, 2).uncounted, uncounted, "{ends:?}");
        }
        memory.forget(&name);
        assert_eq!(memory.of(&name, 2).uncounted, 0);
    }

    fn flight<const COUNT: usize>(ends: [Option<End>; COUNT]) -> Flight<Ticket> {
        let message = Message { id: "i".into(), key: "k".into(), payload: Vec::new() };
        let ticket = Ticket { handle: String::new() };
        Flight { messages: vec![message; COUNT], ends: ends.to_vec(), ticket }
    }
}
