//! A gate that lives in the store, written once over the `Store` port (design.md §8, EM-05).
//!
//! Invariants: `QUEUED` is durable before it is said, because the answer follows the commit; its counters are rows
//! beside the purchase and move in the same transaction. How far a message has travelled is not a column: it is
//! what the `send_due` lane says of the reservation.

use std::sync::Arc;

use onceward_domain::decide;
use onceward_domain::due::{
    Charge, ClaimRequest, Claimed, DueChange, Held, Lane, Sequence, Waiting, pack_ids, unpack_ids,
};
use onceward_domain::error::Error;
use onceward_domain::event::{Event, Fact, OrderCreateRequested};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PurchaseId, SkuKey};
use onceward_domain::machine::transport::Transport;
use onceward_domain::ports::Answer;
use onceward_domain::ports::admission::{
    Admission, AdmissionView, Compensate, CompensateCode, OverdueClaim, Projected, Reserve, ReserveAnswer,
    SendClaim, SendSettlement, Unsent,
};
use onceward_domain::ports::clock::Ids;
use onceward_domain::ports::store::Store;
use onceward_domain::purchase::{Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};

use crate::execute::{Ending, decide_apart, settle, transact};
use crate::outage::outage_in;

/// Entries that are read at once to count what they hold.
const ENTRIES_OF_ONE_READ: u32 = 256;

/// The gate.
pub struct StoreAdmission {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
}

impl StoreAdmission {
    /// A gate over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>) -> Self {
        Self { store, ids }
    }

    /// Claims entries of one of the gate's lanes.
    pub(crate) async fn claim(
        &self,
        lane: &'static str,
        limit: u32,
        lease: Millis,
    ) -> Result<Vec<Claimed>, Error> {
        let request = ClaimRequest { lane: Lane::new(lane), limit, lease, sequence: Sequence::ByDue };
        self.store.claim_due(request).await
    }

    async fn purchases(&self, claims: &[Claimed]) -> Result<Facts, Error> {
        let purchases = claims.iter().flat_map(|one| unpack_ids(&one.body)).collect();
        self.store.view(Need { purchases, ..Need::default() }).await
    }

    async fn end(&self, name: &'static str, ends: Vec<End>) -> Result<u32, Error> {
        let endings = ends.into_iter().map(|end| Ending::at(move |now| end.clone().at(now))).collect();
        settle(&*self.store, name, endings).await
    }

    async fn claim_send_some(&self, limit: u32, lease: Millis) -> Result<Vec<SendClaim>, Error> {
        let claims = self.claim(Lane::SEND_DUE, limit, lease).await?;
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let facts = self.purchases(&claims).await?;
        Ok(claims
            .into_iter()
            .map(|one| SendClaim {
                messages: messages(&facts, &unpack_ids(&one.body)),
                oldest: one.created_at,
                attempts: one.attempts,
                held: one.held,
            })
            .collect())
    }

    /// Reads the lane's entries, oldest first, until enough of them are counted.
    async fn count_unsent(&self, limit: u64) -> Result<Unsent, Error> {
        let (mut unsent, mut after) = (Unsent::default(), None);
        loop {
            let page = self.store.list_due(Lane::new(Lane::SEND_DUE), ENTRIES_OF_ONE_READ, after).await?;
            let Some(last) = page.last() else { return Ok(unsent) };
            if unsent.oldest.is_none() {
                let now = self.store.now().await?;
                unsent.oldest = page.iter().map(|one| now.since(one.created_at)).max();
            }
            unsent.reservations += page.iter().map(|one| unpack_ids(&one.body).len() as u64).sum::<u64>();
            if unsent.reservations > limit {
                return Ok(unsent);
            }
            after = Some(last.member.clone());
        }
    }

    async fn claim_overdue_some(&self, limit: u32, lease: Millis) -> Result<Vec<OverdueClaim>, Error> {
        let claims = self.claim(Lane::DEADLINE, limit, lease).await?;
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let facts = self.purchases(&claims).await?;
        let of_entry = |one: Claimed| {
            let ids = unpack_ids(&one.body);
            let rows = ids.iter().filter_map(|id| facts.purchases.get(id));
            let undecided = rows.filter(|row| row.reservation.is_none()).map(OrderCreateRequested::of);
            part(one, undecided, facts.now)
        };
        Ok(claims.into_iter().map(of_entry).collect())
    }

    /// The row of a flash purchase.
    pub(crate) async fn find_row(&self, id: PurchaseId) -> Result<Option<Purchase>, Error> {
        let mut facts = self.store.view(Need { purchases: vec![id], ..Need::default() }).await?;
        Ok(facts.purchases.remove(&id).filter(|one| one.route == Route::Flash))
    }

    /// A reservation with how far its message has travelled.
    pub(crate) async fn view(&self, purchase: Purchase) -> Result<AdmissionView, Error> {
        let transport = if purchase.reservation.is_some() {
            Transport::Published
        } else {
            let entry = self.store.find_due(Lane::new(Lane::SEND_DUE), purchase.id).await?;
            entry.map_or(Transport::Published, |entry| transport_of(&entry))
        };
        Ok(AdmissionView { purchase, transport })
    }

    async fn find_one(&self, id: PurchaseId) -> Result<Option<AdmissionView>, Error> {
        match self.find_row(id).await? {
            Some(purchase) => self.view(purchase).await.map(Some),
            None => Ok(None),
        }
    }
}

#[derive(Clone)]
enum End {
    Complete(Held),
    Again { held: Held, ids: Vec<PurchaseId>, wait: Millis },
    At { held: Held, ids: Vec<PurchaseId>, due_at: Timestamp },
}

impl End {
    fn at(self, now: Timestamp) -> DueChange {
        match self {
            Self::Complete(held) => DueChange::Complete(held),
            Self::Again { held, ids, wait } => {
                let body = Some(pack_ids(&ids));
                DueChange::Retry { held, due_at: now.plus(wait), body, charge: Charge::Keep }
            }
            Self::At { held, ids, due_at } => {
                DueChange::Retry { held, due_at, body: Some(pack_ids(&ids)), charge: Charge::Refund }
            }
        }
    }
}

fn transport_of(entry: &Waiting) -> Transport {
    match (entry.leased, entry.attempts) {
        (true, _) => Transport::Publishing,
        (false, 0) => Transport::Pending,
        (false, _) => Transport::Unknown,
    }
}

fn messages(facts: &Facts, ids: &[PurchaseId]) -> Vec<OrderCreateRequested> {
    ids.iter().filter_map(|id| facts.purchases.get(id)).map(OrderCreateRequested::of).collect()
}

/// Parts the reservations of an entry that nobody has decided on into what is due and what waits for a later deadline.
pub(crate) fn part(
    claimed: Claimed,
    undecided: impl Iterator<Item = OrderCreateRequested>,
    now: Timestamp,
) -> OverdueClaim {
    let mut reservations = Vec::new();
    let mut remaining: Option<(Timestamp, Vec<PurchaseId>)> = None;
    for one in undecided {
        if one.business_deadline <= now {
            reservations.push(one);
        } else {
            let (first, ids) = remaining.get_or_insert((one.business_deadline, Vec::new()));
            *first = (*first).min(one.business_deadline);
            ids.push(one.purchase);
        }
    }
    OverdueClaim { held: claimed.held, reservations, remaining }
}

/// What a decision on these commands needs.
pub(crate) fn need_of_reserve(commands: &[Reserve]) -> Need {
    let mut need = Need::default();
    for command in commands {
        if !need.skus.contains(&command.key) {
            need.skus.push(command.key.clone());
        }
        need.purchases.extend(command.names());
        need.buyers.push((command.key.clone(), command.user.clone()));
    }
    need.buckets.clone_from(&need.skus);
    need
}

fn need_of_events(events: &[Event]) -> Need {
    let mut need = Need::default();
    let add_bucket = |need: &mut Need, key: &SkuKey| {
        if !need.buckets.contains(key) {
            need.buckets.push(key.clone());
        }
    };
    for event in events {
        match &event.fact {
            Fact::OrderCreated { purchase, lines, .. }
            | Fact::OrderCancelled { purchase, lines, .. }
            | Fact::OrderReinstated { purchase, lines, .. } => {
                need.purchases.push(*purchase);
                lines.iter().for_each(|line| add_bucket(&mut need, &line.key));
            }
            Fact::StockAdjusted { key, .. } => add_bucket(&mut need, key),
            Fact::ReservationRejected { .. } | Fact::OrderPaid { .. } | Fact::OrderRefunded { .. } => {}
        }
    }
    need
}

fn need_of_compensations(commands: &[Compensate]) -> Need {
    let mut need = Need::default();
    for command in commands {
        need.purchases.push(command.purchase);
        if !need.buckets.contains(&command.key) {
            need.buckets.push(command.key.clone());
        }
    }
    need
}

/// Decides them together, and has an answer for each (FS-19). A store that is away is away for all of them.
async fn each<'a, T, O>(
    batch: Vec<T>,
    decide: impl Fn(Arc<[T]>) -> Answer<'a, Vec<O>> + Send + Sync,
) -> Result<Vec<Result<O, Error>>, Error>
where
    T: Clone + Send + Sync,
    O: Send,
{
    let mut answers = decide_apart(batch, decide).await;
    match outage_in(&mut answers) {
        Some(error) => Err(error),
        None => Ok(answers),
    }
}

impl Admission for StoreAdmission {
    fn reserve(&self, commands: Vec<Reserve>) -> Answer<'_, Vec<ReserveAnswer>> {
        let member = self.ids.member();
        let need = need_of_reserve(&commands);
        let decide = move |facts: &mut Facts| Ok(decide::reserve::reserve(facts, &commands, &member));
        Box::pin(transact(&*self.store, "admission.reserve", need, decide))
    }

    fn find(&self, purchase: PurchaseId) -> Answer<'_, Option<AdmissionView>> {
        Box::pin(self.find_one(purchase))
    }

    fn claim_send(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<SendClaim>> {
        Box::pin(self.claim_send_some(limit, lease))
    }

    fn settle_send(&self, settlements: Vec<SendSettlement>) -> Answer<'_, u32> {
        let ends = settlements.into_iter().map(|one| match one {
            SendSettlement::Sent(held) => End::Complete(held),
            SendSettlement::Again { held, unsent, wait } => End::Again { held, ids: unsent, wait },
        });
        Box::pin(self.end("admission.settle_send", ends.collect()))
    }

    fn next_send(&self) -> Answer<'_, Option<Timestamp>> {
        self.store.next_due(Lane::new(Lane::SEND_DUE))
    }

    fn unsent(&self, limit: u64) -> Answer<'_, Unsent> {
        Box::pin(self.count_unsent(limit))
    }

    fn claim_overdue(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<OverdueClaim>> {
        Box::pin(self.claim_overdue_some(limit, lease))
    }

    fn settle_overdue(&self, claims: Vec<OverdueClaim>) -> Answer<'_, u32> {
        let ends = claims.into_iter().map(|one| match one.remaining {
            None => End::Complete(one.held),
            Some((due_at, ids)) => End::At { held: one.held, ids, due_at },
        });
        Box::pin(self.end("admission.settle_overdue", ends.collect()))
    }

    fn next_overdue(&self) -> Answer<'_, Option<Timestamp>> {
        self.store.next_due(Lane::new(Lane::DEADLINE))
    }

    fn project(&self, events: Vec<Event>) -> Answer<'_, Vec<Result<Projected, Error>>> {
        Box::pin(each(events, |part: Arc<[Event]>| {
            let need = need_of_events(&part);
            let decide = move |facts: &mut Facts| decide::project::project(facts, &part);
            Box::pin(transact(&*self.store, "admission.project", need, decide))
        }))
    }

    fn compensate(&self, commands: Vec<Compensate>) -> Answer<'_, Vec<Result<CompensateCode, Error>>> {
        Box::pin(each(commands, |part: Arc<[Compensate]>| {
            let need = need_of_compensations(&part);
            let decide = move |facts: &mut Facts| decide::compensate::release(facts, &part);
            Box::pin(transact(&*self.store, "admission.compensate", need, decide))
        }))
    }

    fn lives_in_store(&self) -> bool {
        true
    }

    fn counters(&self, key: SkuKey) -> Answer<'_, Option<onceward_domain::catalogue::Bucket>> {
        Box::pin(async move {
            let mut facts = self.store.view(Need { buckets: vec![key.clone()], ..Need::default() }).await?;
            Ok(facts.buckets.remove(&key))
        })
    }
}
