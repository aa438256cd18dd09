//! A bus that lives in the store, written once over the `Store` port (EM-05).
//!
//! Messages travel in carriers: one due-work row per published chunk. Invariants: a carrier leaves its lane only when
//! every message in it has been settled; until then its lease ends and all of it comes again. The memory of half-settled
//! carriers is only a convenience: losing it means a redelivery, which the inbox recognises.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::changes::ChangeSet;
use onceward_domain::due::{Charge, ClaimRequest, DueChange, Held, Lane, Sequence, Token};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::Need;
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{Bus, Delivery, Message, Published, Receipt, Settlement, Topic};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};

use crate::execute::{Ending, settle, transact};
use crate::frame;

/// Most messages in one carrier.
pub const CARRIER_LIMIT: usize = 512;
/// Most carriers that one `consume` claims.
pub const CARRIERS_PER_CLAIM: u32 = 16;

/// The lane in which a topic's carriers wait.
#[must_use]
pub fn lane_of(topic: Topic) -> Lane {
    Lane::new(&format!("{}{}/{}", Lane::BUS_PREFIX, topic.name(), topic.group()))
}

fn sequence_of(topic: Topic) -> Sequence {
    match topic {
        Topic::OrderCreate => Sequence::ByDue,
        Topic::Events => Sequence::Strict,
    }
}

/// A carrier that was handed out and is not settled to the last message.
struct Flight {
    lease_until: Timestamp,
    messages: Vec<Message>,
    ends: Vec<Option<End>>,
}

#[derive(Clone, Copy)]
enum End {
    Ack,
    Retry(Millis),
    Dead,
}

type Flights = BTreeMap<(Arc<str>, i64), Flight>;

/// The bus.
pub struct StoreBus {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    flights: Mutex<Flights>,
}

impl StoreBus {
    /// A bus over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        Self { store, ids, flights: Mutex::new(Flights::new()) }
    }

    fn flights(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn publish_all(&self, topic: Topic, messages: Vec<Message>) -> Result<Vec<Published>, Error> {
        let count = messages.len();
        let carriers: Vec<_> =
            messages.chunks(CARRIER_LIMIT).map(|chunk| (self.ids.member(), frame::pack(chunk))).collect();
        let lane = lane_of(topic);
        let put = move |facts: &mut onceward_domain::facts::Facts| {
            let due = carriers
                .iter()
                .map(|(member, body)| DueChange::Put {
                    lane: lane.clone(),
                    member: member.clone(),
                    due_at: facts.now,
                    body: body.clone(),
                })
                .collect();
            Ok((ChangeSet { due, ..ChangeSet::default() }, ()))
        };
        match transact(&*self.store, "bus.publish", Need::default(), put).await {
            Ok(()) => Ok(vec![Published::Acked; count]),
            Err(error) if error.class() == Class::UnknownOutcome => Ok(vec![Published::Unknown; count]),
            Err(error) => Err(error),
        }
    }

    async fn consume_some(&self, topic: Topic, lease: Millis) -> Result<Vec<Delivery>, Error> {
        let lane = lane_of(topic);
        let sequence = sequence_of(topic);
        let request = ClaimRequest { lane, limit: CARRIERS_PER_CLAIM, lease, sequence };
        let claimed = self.store.claim_due(request).await?;
        let mut deliveries = Vec::new();
        let mut flights = self.flights();
        if let Some(latest) = claimed.iter().map(|one| one.lease_until.minus(lease)).max() {
            flights.retain(|_, flight| flight.lease_until >= latest);
        }
        for one in claimed {
            let messages = frame::unpack(&one.body)?;
            for (index, message) in messages.iter().enumerate() {
                let index = u32::try_from(index).expect("a carrier holds few messages");
                deliveries.push(Delivery {
                    receipt: Receipt { carrier: one.held.member.clone(), token: one.held.token.0, index },
                    message: message.clone(),
                    attempts: one.attempts,
                    published_at: one.created_at,
                });
            }
            let ends = vec![None; messages.len()];
            let key = (one.held.member, one.held.token.0);
            flights.insert(key, Flight { lease_until: one.lease_until, messages, ends });
        }
        Ok(deliveries)
    }

    /// Notes ends; gives back the carriers whose last message has one now.
    fn note(&self, settlements: Vec<Settlement>) -> Vec<((Arc<str>, i64), Flight)> {
        let mut flights = self.flights();
        let mut done = Vec::new();
        for settlement in settlements {
            let (receipt, end) = match settlement {
                Settlement::Ack(receipt) => (receipt, End::Ack),
                Settlement::Retry(receipt, wait) => (receipt, End::Retry(wait)),
                Settlement::Dead(receipt) => (receipt, End::Dead),
            };
            let key = (receipt.carrier, receipt.token);
            let Some(flight) = flights.get_mut(&key) else { continue };
            if let Some(slot) = flight.ends.get_mut(receipt.index as usize) {
                *slot = Some(end);
            }
            if flight.ends.iter().all(Option::is_some)
                && let Some(flight) = flights.remove(&key)
            {
                done.push((key, flight));
            }
        }
        done
    }

    async fn settle_all(&self, topic: Topic, settlements: Vec<Settlement>) -> Result<(), Error> {
        let lane = lane_of(topic);
        let endings: Vec<Ending> = self
            .note(settlements)
            .into_iter()
            .map(|((member, token), flight)| -> Ending {
                let held = Held { lane: lane.clone(), member, token: Token(token) };
                Arc::new(move |now| close_flight(&held, &flight, now))
            })
            .collect();
        if !endings.is_empty() {
            settle(&*self.store, "bus.settle", endings).await?;
        }
        Ok(())
    }
}

fn close_flight(held: &Held, flight: &Flight, now: Timestamp) -> Vec<DueChange> {
    let mut due = Vec::new();
    let mut again = Vec::new();
    let mut wait = Millis(0);
    for (message, end) in flight.messages.iter().zip(&flight.ends) {
        match end {
            Some(End::Ack) => {}
            Some(End::Retry(one)) => {
                wait = wait.max(*one);
                again.push(message.clone());
            }
            Some(End::Dead) => due.push(DueChange::Put {
                lane: held.lane.dead_letters(),
                member: message.id.clone(),
                due_at: now,
                body: frame::pack(std::slice::from_ref(message)),
            }),
            None => unreachable!("a flight closes when every message has an end"),
        }
    }
    due.push(if again.is_empty() {
        DueChange::Complete(held.clone())
    } else {
        let body = Some(frame::pack(&again));
        DueChange::Retry { held: held.clone(), due_at: now.plus(wait), body, charge: Charge::Keep }
    });
    due
}

/// When the head of a strict lane is due. What waits behind it may be due earlier and is not given out all the same,
/// so a worker that slept by the lane's earliest time would spin for as long as somebody else holds the head.
pub(crate) async fn head_due(store: &dyn Store, lane: Lane) -> Result<Option<Timestamp>, Error> {
    let head = store.list_due(lane, 1, None).await?;
    Ok(head.first().map(|waiting| waiting.due_at))
}

impl Bus for StoreBus {
    fn publish(&self, topic: Topic, messages: Vec<Message>) -> Answer<'_, Vec<Published>> {
        Box::pin(self.publish_all(topic, messages))
    }

    fn consume(&self, topic: Topic, _limit: u32, lease: Millis) -> Answer<'_, Vec<Delivery>> {
        Box::pin(self.consume_some(topic, lease))
    }

    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()> {
        Box::pin(self.settle_all(topic, settlements))
    }

    fn next_delivery(&self, topic: Topic) -> Answer<'_, Option<Timestamp>> {
        match sequence_of(topic) {
            Sequence::ByDue => self.store.next_due(lane_of(topic)),
            Sequence::Strict => Box::pin(head_due(&*self.store, lane_of(topic))),
        }
    }
}
