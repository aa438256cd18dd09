//! Carriers that were handed out and are not settled to the last message.
//!
//! Messages are settled one by one, carriers as a whole: a bus that packs many messages into one carrier waits until
//! each of them has an end. Invariants: a carrier lands once, with its last message; a settlement for a carrier that is
//! not in the air changes nothing. The memory is only a convenience: losing it means a redelivery, which the inbox
//! recognises. Deliberately absent: what an end means to the bus.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::bus::{Message, Settlement};
use crate::time::Millis;

/// How a message of a carrier ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Done.
    Ack,
    /// To come again after this long.
    Retry(Millis),
    /// The same, and the delivery does not count.
    HandBack(Millis),
    /// To be set aside for a person.
    Dead,
}

/// A carrier in the air, with what its bus needs to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight<T> {
    /// Its messages, in order.
    pub messages: Vec<Message>,
    /// An end for each message, as far as they have one.
    pub ends: Vec<Option<End>>,
    /// The bus's own.
    pub ticket: T,
}

impl<T> Flight<T> {
    /// A carrier none of whose messages has an end.
    pub fn new(messages: Vec<Message>, ticket: T) -> Self {
        let ends = vec![None; messages.len()];
        Self { messages, ends, ticket }
    }

    /// The longest wait that one of its messages asked for; `None` where none is to come again.
    pub fn wait(&self) -> Option<Millis> {
        let waits = self.ends.iter().filter_map(|end| match end {
            Some(End::Retry(wait) | End::HandBack(wait)) => Some(*wait),
            Some(End::Ack | End::Dead) | None => None,
        });
        waits.max()
    }

    /// Whether its delivery counts: not where all that comes again was handed back untried.
    pub fn counts(&self) -> bool {
        let is_handed_back = self.ends.iter().flatten().any(|end| matches!(end, End::HandBack(_)));
        !is_handed_back || self.ends.iter().flatten().any(|end| matches!(end, End::Retry(_)))
    }

    /// The messages that are to come again.
    pub fn returning(&self) -> impl Iterator<Item = &Message> {
        self.ended(|end| matches!(end, End::Retry(_) | End::HandBack(_)))
    }

    /// Its messages with this kind of end.
    pub fn ended(&self, is_it: fn(End) -> bool) -> impl Iterator<Item = &Message> {
        let with_ends = self.messages.iter().zip(&self.ends);
        with_ends.filter(move |(_, end)| end.is_some_and(is_it)).map(|(message, _)| message)
    }
}

/// The carriers in the air, by name and token of the delivery.
#[derive(Debug)]
pub struct Flights<T> {
    flights: BTreeMap<(i64, Arc<str>), Flight<T>>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { flights: BTreeMap::new() }
    }
}

impl<T> Flights<T> {
    /// Notes that a carrier was handed out.
    pub fn take_off(&mut self, carrier: Arc<str>, token: i64, flight: Flight<T>) {
        self.flights.insert((token, carrier), flight);
    }

    /// Forgets carriers whose lease is over, by what their tickets say.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.flights.retain(|_, flight| keep(&flight.ticket));
    }

    /// Forgets the carriers with the lowest tokens until no more than this many are left.
    pub fn shrink(&mut self, limit: usize) {
        while self.flights.len() > limit {
            self.flights.pop_first();
        }
    }

    /// Notes ends; gives back the carriers whose last message has one now.
    ///
    /// ```
    /// use onceward_domain::flight::{Flight, Flights};
    /// use onceward_domain::ports::bus::{Message, Receipt, Settlement};
    /// let message = |id: &str| Message { id: id.into(), key: id.into(), payload: Vec::new() };
    /// let mut flights = Flights::default();
    /// flights.take_off("c".into(), 7, Flight::new(vec![message("a"), message("b")], ()));
    /// let ack = |index| Settlement::Ack(Receipt { carrier: "c".into(), token: 7, index });
    /// assert!(flights.land(vec![ack(1)]).is_empty());
    /// assert_eq!(flights.land(vec![ack(0)]).len(), 1);
    /// assert!(flights.land(vec![ack(0)]).is_empty());
    /// ```
    pub fn land(&mut self, settlements: Vec<Settlement>) -> Vec<(Arc<str>, i64, Flight<T>)> {
        let mut landed = Vec::new();
        for settlement in settlements {
            let (receipt, end) = match settlement {
                Settlement::Ack(receipt) => (receipt, End::Ack),
                Settlement::Retry(receipt, wait) => (receipt, End::Retry(wait)),
                Settlement::HandBack(receipt, wait) => (receipt, End::HandBack(wait)),
                Settlement::Dead(receipt) => (receipt, End::Dead),
            };
            let key = (receipt.token, receipt.carrier);
            let Some(flight) = self.flights.get_mut(&key) else { continue };
            if let Some(slot) = flight.ends.get_mut(receipt.index as usize) {
                *slot = Some(end);
            }
            if flight.ends.iter().all(Option::is_some)
                && let Some(flight) = self.flights.remove(&key)
            {
                landed.push((key.1, key.0, flight));
            }
        }
        landed
    }
}
