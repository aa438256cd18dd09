//! A bus that lives in the store, written once over the `Store` port (EM-05).
//!
//! Messages travel in carriers: one due-work row per published chunk. Invariants: a carrier leaves its lane only when
//! every message in it has been settled; until then its lease ends and all of it comes again. The memory of half-settled
//! carriers is only a convenience: losing it means a redelivery, which the inbox recognises. Beside the bus, whichever it is, its
//! consumers have a shelf in the store for what cannot be done now and must not hold up what comes behind it. A carrier that cannot be
//! unpacked becomes a dead letter as a whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::carrier;
use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::queue;
use onceward_domain::due::{Charge, ClaimRequest, DueChange, Held, Lane, Sequence, Token};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::flight::{End, Flight, Flights};
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::{
    Bus, Capabilities, Delivery, Message, Order, Published, Receipt, Settlement, Topic,
};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};

use crate::execute::{Ending, settle, transact};
use crate::store_queue::exhaust_spent;

/// Most messages in one carrier.
pub const CARRIER_LIMIT: usize = 512;
/// Most carriers that one `consume` claims.
pub const CARRIERS_PER_CLAIM: u32 = 16;

/// The lane in which a topic's carriers wait.
#[must_use]
pub fn lane_of(topic: Topic) -> Lane {
    Lane::new(&format!("{}{}/{}", Lane::BUS_PREFIX, topic.name(), topic.group()))
}

/// The lane in which carriers wait that a topic's consumers have put aside.
#[must_use]
pub fn aside_of(topic: Topic) -> Lane {
    Lane::new(&format!("{}/aside", lane_of(topic)))
}

/// Which lanes of the store these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The bus itself, in the order that its topics promise.
    Bus,
    /// What consumers have put aside, in no order.
    Shelf,
}

impl Kind {
    fn lane_of(self, topic: Topic) -> Lane {
        match self {
            Self::Bus => lane_of(topic),
            Self::Shelf => aside_of(topic),
        }
    }

    fn sequence_of(self, topic: Topic) -> Sequence {
        match (self, topic) {
            (Self::Bus, Topic::Events) => Sequence::Strict,
            (Self::Bus, Topic::OrderCreate) | (Self::Shelf, _) => Sequence::ByDue,
        }
    }
}

/// The bus.
pub struct StoreBus {
    kind: Kind,
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    /// Their tickets are the ends of their leases.
    flights: Mutex<Flights<Timestamp>>,
}

impl StoreBus {
    /// A bus over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        Self { kind: Kind::Bus, store, ids, flights: Mutex::default() }
    }

    /// What consumers put aside, beside a bus over this store or any other.
    pub(crate) fn shelf(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        Self { kind: Kind::Shelf, ..Self::new(store, ids) }
    }

    fn flights(&self) -> MutexGuard<'_, Flights<Timestamp>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn publish_all(&self, topic: Topic, messages: Vec<Message>) -> Result<Vec<Published>, Error> {
        let count = messages.len();
        match self.put(topic, &messages, Millis(0)).await {
            Ok(()) => Ok(vec![Published::Acked; count]),
            Err(error) if error.class() == Class::UnknownOutcome => Ok(vec![Published::Unknown; count]),
            Err(error) => Err(error),
        }
    }

    /// Puts messages in, to be given out after this long.
    pub(crate) async fn put(&self, topic: Topic, messages: &[Message], wait: Millis) -> Result<(), Error> {
        let carriers: Vec<_> =
            messages.chunks(CARRIER_LIMIT).map(|chunk| (self.ids.member(), carrier::pack(chunk))).collect();
        let lane = self.kind.lane_of(topic);
        let put = move |facts: &mut Facts| {
            let due = carriers
                .iter()
                .map(|(member, body)| DueChange::Put {
                    lane: lane.clone(),
                    member: member.clone(),
                    due_at: facts.now.plus(wait),
                    body: body.clone(),
                })
                .collect();
            Ok((ChangeSet { due, ..ChangeSet::default() }, ()))
        };
        transact(&*self.store, "bus.publish", Need::default(), put).await
    }

    async fn consume_some(&self, topic: Topic, lease: Millis) -> Result<Vec<Delivery>, Error> {
        let (lane, sequence) = (self.kind.lane_of(topic), self.kind.sequence_of(topic));
        let request = ClaimRequest { lane, limit: CARRIERS_PER_CLAIM, lease, sequence };
        let (mut carriers, mut damaged) = (Vec::new(), Vec::new());
        for one in self.store.claim_due(request).await? {
            // An empty one has nothing that could be settled.
            match carrier::unpack(&one.body) {
                Ok(messages) if !messages.is_empty() => carriers.push((one, messages)),
                outcome => {
                    let (member, error) = (&one.held.member, outcome.err());
                    tracing::error!(target: "onceward", event = "bus.damaged_carrier", lane = %one.held.lane, %member, ?error);
                    damaged.push(one);
                }
            }
        }
        // As it is, for a person: it would only come again, and hold up what comes behind it.
        if let Err(error) = exhaust_spent(&*self.store, damaged).await {
            tracing::warn!(target: "onceward", event = "bus.damaged_carrier_kept", ?error);
        }
        let mut deliveries = Vec::new();
        let mut flights = self.flights();
        if let Some(latest) = carriers.iter().map(|(one, _)| one.lease_until.minus(lease)).max() {
            flights.retain(|lease_until| *lease_until >= latest);
        }
        for (one, messages) in carriers {
            for (index, message) in messages.iter().enumerate() {
                let index = u32::try_from(index).expect("a carrier holds few messages");
                deliveries.push(Delivery {
                    receipt: Receipt { carrier: one.held.member.clone(), token: one.held.token.0, index },
                    message: message.clone(),
                    attempts: one.attempts,
                    published_at: one.created_at,
                });
            }
            flights.take_off(one.held.member, one.held.token.0, Flight::new(messages, one.lease_until));
        }
        Ok(deliveries)
    }

    async fn settle_all(&self, topic: Topic, settlements: Vec<Settlement>) -> Result<(), Error> {
        let lane = self.kind.lane_of(topic);
        let endings: Vec<Ending> = self
            .flights()
            .land(settlements)
            .into_iter()
            .map(|(member, token, flight)| {
                let held = Held { lane: lane.clone(), member, token: Token(token) };
                let dead = flight.ended(|end| end == End::Dead);
                let dead = dead.map(|message| (lane.dead_letters(), message.id.clone())).collect();
                Ending::with(dead, move |facts, changes| close_flight(&held, &flight, facts, changes))
            })
            .collect();
        if !endings.is_empty() {
            settle(&*self.store, "bus.settle", endings).await?;
        }
        Ok(())
    }
}

fn close_flight(held: &Held, flight: &Flight<Timestamp>, facts: &mut Facts, changes: &mut ChangeSet) {
    for message in flight.ended(|end| end == End::Dead) {
        let body = carrier::pack(std::slice::from_ref(message));
        queue::set_aside(facts, changes, held, &message.id, &body);
    }
    changes.due.push(match flight.wait() {
        None => DueChange::Complete(held.clone()),
        Some(wait) => {
            let again: Vec<Message> = flight.returning().cloned().collect();
            let (body, due_at) = (Some(carrier::pack(&again)), facts.now.plus(wait));
            let charge = if flight.counts() { Charge::Keep } else { Charge::Refund };
            DueChange::Retry { held: held.clone(), due_at, body, charge }
        }
    });
}

/// When the head of a strict lane is due. What waits behind it may be due earlier and is not given out all the same,
/// so a worker that slept by the lane's earliest time would spin for as long as somebody else holds the head.
pub(crate) async fn head_due(store: &dyn Store, lane: Lane) -> Result<Option<Timestamp>, Error> {
    if store.next_due(lane.clone()).await?.is_none() {
        // Empty, or paused.
        return Ok(None);
    }
    let head = store.list_due(lane, 1, None).await?;
    Ok(head.first().map(|waiting| waiting.due_at))
}

impl Bus for StoreBus {
    fn capabilities(&self) -> Capabilities {
        let (shortest_lease, lateness) = (Millis(1), Millis(0));
        Capabilities { order: Order::Topic, foresight: true, shortest_lease, lateness }
    }

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
        let lane = self.kind.lane_of(topic);
        match self.kind.sequence_of(topic) {
            Sequence::ByDue => self.store.next_due(lane),
            Sequence::Strict => Box::pin(head_due(&*self.store, lane)),
        }
    }
}
