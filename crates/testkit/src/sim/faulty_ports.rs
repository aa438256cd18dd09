//! Bus and gate behind the same bad line: copies, another order, and repeated commands.
//!
//! The store below them already loses answers and calls; here is only what a bus or a gate adds. Invariant: the
//! topic of events keeps its order (the port promises it), so only copies are made there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use onceward::wire;
use onceward_domain::catalogue::Bucket;
use onceward_domain::due::Token;
use onceward_domain::error::Error;
use onceward_domain::event::{Event, OrderCreateRequested};
use onceward_domain::id::{PurchaseId, SkuKey, UserId};
use onceward_domain::ports::Answer;
use onceward_domain::ports::admission::{
    Admission, AdmissionView, Birth, Compensate, CompensateCode, OverdueClaim, Part, Projected, Reserve,
    ReserveAnswer, SendClaim, SendSettlement, Unsent,
};
use onceward_domain::ports::bus::{
    Bus, Capabilities, Delivery, Message, Published, Receipt, Settlement, Topic,
};
use onceward_domain::time::{Millis, Timestamp};

use super::outcome;
use super::world::World;

/// Carrier, token and index of one delivery.
type Carried = (Arc<str>, i64, u32);

/// A bus that delivers copies, and out of order where it may.
pub(crate) struct FaultyBus {
    world: Arc<World>,
    inner: Arc<dyn Bus>,
    delivered: Mutex<BTreeMap<Carried, Message>>,
}

impl FaultyBus {
    pub(crate) fn new(world: Arc<World>, inner: Arc<dyn Bus>) -> Self {
        Self { world, inner, delivered: Mutex::default() }
    }

    /// A message may be acknowledged only after its effect is durable (FS-06, FS-13).
    fn check_acks(&self, topic: Topic, settlements: &[Settlement]) {
        let delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        for settlement in settlements {
            let Settlement::Ack(Receipt { carrier, token, index }) = settlement else { continue };
            let Some(message) = delivered.get(&(carrier.clone(), *token, *index)) else {
                self.world
                    .violated(format!("{carrier} {token} {index} was acknowledged and never delivered"));
                continue;
            };
            if !outcome::has_landed(&self.world, topic, message) {
                self.world.violated(format!("{} was acknowledged before its effect was durable", message.id));
            }
        }
    }

    async fn publish_twice(&self, topic: Topic, messages: Vec<Message>) -> Result<Vec<Published>, Error> {
        let forged = self.world.rates().forged;
        if topic == Topic::OrderCreate && self.world.draw(|rng| rng.chance(forged)) {
            let copies = messages.iter().map(|message| self.forge(message)).collect();
            if self.inner.publish(topic, copies).await.is_ok() {
                self.world.sometimes("forged_message");
            }
        }
        let duplicate = self.world.rates().duplicate;
        if self.world.draw(|rng| rng.chance(duplicate)) {
            let copies = self.inner.publish(topic, messages.clone()).await;
            if copies.is_ok() {
                self.world.sometimes("duplicate_delivery");
            }
        }
        let ids: Vec<Arc<str>> = messages.iter().map(|message| message.id.clone()).collect();
        let outcomes = self.inner.publish(topic, messages).await?;
        for (id, outcome) in ids.into_iter().zip(&outcomes) {
            if *outcome == Published::Acked {
                self.world.saw_published(id);
            }
        }
        Ok(outcomes)
    }

    /// A message under a known id that says something else, or nothing that can be read (FS-08).
    fn forge(&self, message: &Message) -> Message {
        let mut forged = message.clone();
        match (self.world.draw(|rng| rng.index(4)), wire::decode_message(&message.payload)) {
            (0, Ok(mut content)) => {
                content.quantity += 1;
                forged = wire::encode_message(&content);
            }
            (2, Ok(mut content)) => {
                content.business_deadline = content.business_deadline.plus(Millis(1));
                forged = wire::encode_message(&content);
            }
            (1, Ok(mut content)) => {
                content.user = UserId::trusted("somebody-else");
                forged = wire::encode_message(&content);
            }
            _ => forged.payload.truncate(message.payload.len() / 2),
        }
        forged
    }

    async fn consume_shuffled(
        &self,
        topic: Topic,
        limit: u32,
        lease: Millis,
    ) -> Result<Vec<Delivery>, Error> {
        let mut deliveries = self.inner.consume(topic, limit, lease).await?;
        let rates = self.world.rates();
        if deliveries.is_empty() {
            return Ok(deliveries);
        }
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        for Delivery { receipt, message, .. } in &deliveries {
            let key = (receipt.carrier.clone(), receipt.token, receipt.index);
            delivered.insert(key, message.clone());
        }
        drop(delivered);
        if topic == Topic::OrderCreate && self.world.draw(|rng| rng.chance(rates.reorder)) {
            self.world.draw(|rng| rng.shuffle(&mut deliveries));
            self.world.sometimes("reordered_delivery");
        }
        if self.world.draw(|rng| rng.chance(rates.duplicate)) {
            let copy = deliveries[self.world.draw(|rng| rng.index(deliveries.len()))].clone();
            deliveries.push(copy);
            self.world.sometimes("duplicate_in_batch");
        }
        Ok(deliveries)
    }
}

impl Bus for FaultyBus {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn publish(&self, topic: Topic, messages: Vec<Message>) -> Answer<'_, Vec<Published>> {
        Box::pin(self.publish_twice(topic, messages))
    }

    fn consume(&self, topic: Topic, limit: u32, lease: Millis) -> Answer<'_, Vec<Delivery>> {
        Box::pin(self.consume_shuffled(topic, limit, lease))
    }

    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Answer<'_, ()> {
        self.check_acks(topic, &settlements);
        self.inner.settle(topic, settlements)
    }

    fn next_delivery(&self, topic: Topic) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_delivery(topic)
    }
}

/// A gate whose commands may arrive twice.
pub(crate) struct FaultyAdmission {
    world: Arc<World>,
    inner: Arc<dyn Admission>,
    claimed: Mutex<BTreeMap<Token, Vec<PurchaseId>>>,
}

impl FaultyAdmission {
    pub(crate) fn new(world: Arc<World>, inner: Arc<dyn Admission>) -> Self {
        Self { world, inner, claimed: Mutex::default() }
    }

    async fn claim_send_noted(&self, limit: u32, lease: Millis) -> Result<Vec<SendClaim>, Error> {
        let claims = self.inner.claim_send(limit, lease).await?;
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        for claim in &claims {
            claimed.insert(claim.held.token, claim.messages.iter().map(|message| message.purchase).collect());
        }
        drop(claimed);
        Ok(claims)
    }

    /// What is called sent was acknowledged by the bus (FS-05, DR-02).
    fn check_sent(&self, settlements: &[SendSettlement]) {
        let claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        for settlement in settlements {
            let (held, unsent) = match settlement {
                SendSettlement::Sent(held) => (held, [].as_slice()),
                SendSettlement::Again { held, unsent, .. } => (held, unsent.as_slice()),
            };
            let messages = claimed.get(&held.token).into_iter().flatten();
            for purchase in messages.filter(|purchase| !unsent.contains(purchase)) {
                let id = purchase.message().to_string();
                if !self.world.was_published(&id) {
                    self.world.violated(format!("{id} is called sent, and no bus acknowledged it"));
                }
            }
        }
    }

    fn repeats(&self) -> bool {
        let duplicate = self.world.rates().duplicate;
        self.world.draw(|rng| rng.chance(duplicate))
    }

    async fn compensate_twice(
        &self,
        commands: Vec<Compensate>,
    ) -> Result<Vec<Result<CompensateCode, Error>>, Error> {
        if self.repeats() {
            // The first answer never reached the caller; the repeat is what it hears.
            drop(self.inner.compensate(commands.clone()).await);
        }
        let codes = self.inner.compensate(commands).await?;
        for code in codes.iter().flatten() {
            self.world.trace("compensate", code.code().unsigned_abs().into());
            if *code == CompensateCode::AlreadyApplied {
                self.world.sometimes("compensation_repeated");
            }
        }
        Ok(codes)
    }

    async fn project_twice(&self, events: Vec<Event>) -> Result<Vec<Result<Projected, Error>>, Error> {
        if self.repeats() {
            drop(self.inner.project(events.clone()).await);
        }
        let outcomes = self.inner.project(events).await?;
        if outcomes.iter().flatten().any(|outcome| *outcome == Projected::Nothing) {
            self.world.sometimes("projection_repeated");
        }
        if outcomes.iter().flatten().any(|outcome| *outcome == Projected::TooEarly) {
            self.world.sometimes("projection_too_early");
        }
        Ok(outcomes)
    }
}

impl Admission for FaultyAdmission {
    fn reserve(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<ReserveAnswer>> {
        self.inner.reserve(commands)
    }

    fn reserve_each(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<Result<ReserveAnswer, Error>>> {
        self.inner.reserve_each(commands)
    }

    fn part(&self, command: &Reserve) -> Part {
        self.inner.part(command)
    }

    fn find(&self, purchase: PurchaseId) -> Answer<'_, Option<AdmissionView>> {
        self.inner.find(purchase)
    }

    fn find_at(
        &self,
        purchase: PurchaseId,
        key: &SkuKey,
        user: &UserId,
    ) -> Answer<'_, Option<AdmissionView>> {
        self.inner.find_at(purchase, key, user)
    }

    fn claim_send(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<SendClaim>> {
        Box::pin(self.claim_send_noted(limit, lease))
    }

    fn settle_send(&self, settlements: Vec<SendSettlement>) -> Answer<'_, u32> {
        self.check_sent(&settlements);
        let asked = u32::try_from(settlements.len()).expect("few claims at a time");
        Box::pin(async move {
            let held = self.inner.settle_send(settlements).await?;
            if held < asked {
                self.world.sometimes("lease_lost");
            }
            Ok(held)
        })
    }

    fn next_send(&self) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_send()
    }

    fn unsent(&self, limit: u64) -> Answer<'_, Unsent> {
        self.inner.unsent(limit)
    }

    fn claim_overdue(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<OverdueClaim>> {
        self.inner.claim_overdue(limit, lease)
    }

    fn settle_overdue(&self, claims: Vec<OverdueClaim>) -> Answer<'_, u32> {
        self.inner.settle_overdue(claims)
    }

    fn next_overdue(&self) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_overdue()
    }

    fn project(&self, events: Vec<Event>) -> Answer<'_, Vec<Result<Projected, Error>>> {
        Box::pin(self.project_twice(events))
    }

    fn compensate(&self, commands: Vec<Compensate>) -> Answer<'_, Vec<Result<CompensateCode, Error>>> {
        Box::pin(self.compensate_twice(commands))
    }

    fn lives_in_store(&self) -> bool {
        self.inner.lives_in_store()
    }

    fn births(&self, messages: Vec<OrderCreateRequested>) -> Answer<'_, Vec<Birth>> {
        self.inner.births(messages)
    }

    fn counters(&self, key: SkuKey) -> Answer<'_, Option<Bucket>> {
        self.inner.counters(key)
    }
}
