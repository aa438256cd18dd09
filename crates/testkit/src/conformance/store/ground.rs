//! What the cases stand on: a store, its clock, and rows to write.

use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku, Stock};
use onceward_domain::changes::{ChangeSet, CompensationTask, PurchaseMove, Step, StockMove, Transition};
use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::due::{Charge, ClaimRequest, Claimed, DueChange, Held, Lane, Sequence};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{AccountId, ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::compensation::Compensation;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Order, Purchase, Route};
use onceward_domain::time::{Millis, Timestamp};

use crate::block_on::block_on;
use crate::clock::ManualClock;

/// When every case begins: 2026-01-01T00:00:00Z.
pub(in crate::conformance) const START: Timestamp = Timestamp(1_767_225_600_000);
/// An ordinary lease.
pub(in crate::conformance) const LEASE: Millis = Millis(30_000);

/// A store under test and its clock.
pub(crate) struct Ground {
    pub(in crate::conformance) clock: Arc<ManualClock>,
    pub(in crate::conformance) store: Arc<dyn Store>,
}

impl Ground {
    pub(in crate::conformance) fn new(clock: Arc<ManualClock>, store: Arc<dyn Store>) -> Self {
        Self { clock, store }
    }

    /// Writes a set without looking at anything.
    pub(in crate::conformance) fn write(&self, changes: ChangeSet) -> Result<(), Error> {
        self.decide(Need::default(), move |_| Ok(changes.clone()))
    }

    /// Writes a set that must go through.
    pub(in crate::conformance) fn must(&self, changes: ChangeSet) {
        self.write(changes).expect("this set breaks no guard");
    }

    /// Runs a decision.
    pub(in crate::conformance) fn decide(
        &self,
        need: Need,
        decide: impl Fn(&mut Facts) -> Result<ChangeSet, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        block_on(self.store.transact(Work { name: "conformance", need, decide: Arc::new(decide) }))
    }

    /// Checks that a set is refused with this code.
    pub(in crate::conformance) fn refuses(&self, changes: ChangeSet, code: Code) {
        let error = self.write(changes).expect_err("this set must be refused");
        assert_eq!(error.code(), code, "{error}");
    }

    pub(in crate::conformance) fn view(&self, need: Need) -> Facts {
        block_on(self.store.view(need)).expect("views answer")
    }

    pub(in crate::conformance) fn purchase(&self, id: PurchaseId) -> Option<Purchase> {
        self.view(Need { purchases: vec![id], ..Need::default() }).purchases.remove(&id)
    }

    pub(in crate::conformance) fn sku(&self, key: &SkuKey) -> Sku {
        let mut facts = self.view(Need { skus: vec![key.clone()], ..Need::default() });
        facts.skus.remove(key).expect("the SKU is there")
    }

    pub(in crate::conformance) fn bucket(&self, key: &SkuKey) -> Bucket {
        let mut facts = self.view(Need { buckets: vec![key.clone()], ..Need::default() });
        facts.buckets.remove(key).expect("the bucket is there")
    }

    /// An activity with one SKU, its bucket and this much stock.
    pub(in crate::conformance) fn sale(&self, stock: i64) -> SkuKey {
        let sku = sku("sale", "sku", stock);
        let key = sku.key.clone();
        self.must(ChangeSet {
            activities: vec![activity("sale")],
            new_buckets: vec![Bucket::full(key.clone(), stock)],
            new_skus: vec![sku],
            ..ChangeSet::default()
        });
        key
    }

    pub(in crate::conformance) fn put(&self, lane: &Lane, member: &str, due_at: Timestamp) {
        self.must(due(vec![put(lane, member, due_at)]));
    }

    pub(in crate::conformance) fn claim(&self, lane: &Lane, limit: u32) -> Vec<Claimed> {
        self.claim_as(lane, limit, Sequence::ByDue)
    }

    pub(in crate::conformance) fn claim_as(
        &self,
        lane: &Lane,
        limit: u32,
        sequence: Sequence,
    ) -> Vec<Claimed> {
        let request = ClaimRequest { lane: lane.clone(), limit, lease: LEASE, sequence };
        block_on(self.store.claim_due(request)).expect("claims answer")
    }

    /// Claims the one member that is due.
    pub(in crate::conformance) fn claim_one(&self, lane: &Lane) -> Claimed {
        let mut claimed = self.claim(lane, 10);
        assert_eq!(claimed.len(), 1, "one member of {lane} is due");
        claimed.remove(0)
    }

    pub(in crate::conformance) fn next_due(&self, lane: &Lane) -> Option<Timestamp> {
        block_on(self.store.next_due(lane.clone())).expect("next_due answers")
    }
}

pub(in crate::conformance) fn lane(name: &str) -> Lane {
    Lane::new(name)
}

pub(in crate::conformance) fn due(changes: Vec<DueChange>) -> ChangeSet {
    ChangeSet { due: changes, ..ChangeSet::default() }
}

pub(in crate::conformance) fn put(lane: &Lane, member: &str, due_at: Timestamp) -> DueChange {
    DueChange::Put { lane: lane.clone(), member: Arc::from(member), due_at, body: member.as_bytes().to_vec() }
}

pub(in crate::conformance) fn retry(held: &Held, due_at: Timestamp) -> ChangeSet {
    due(vec![DueChange::Retry { held: held.clone(), due_at, body: None, charge: Charge::Keep }])
}

pub(in crate::conformance) fn names(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|claim| &*claim.held.member).collect()
}

pub(in crate::conformance) fn activity(id: &str) -> Activity {
    Activity {
        id: ActivityId::trusted(id),
        name: Arc::from("A sale"),
        starts_at: START,
        ends_at: START.plus(Millis(3_600_000)),
        payment_window: Millis(900_000),
        cancel_grace: Millis(60_000),
        reservation_deadline: Millis(120_000),
        confirm_after_cancel: Millis(45_000),
        late_payment: LatePayment::Refund,
        cancelled_frees_limit: true,
    }
}

pub(in crate::conformance) fn key(activity: &str, sku: &str) -> SkuKey {
    SkuKey { activity: ActivityId::trusted(activity), sku: SkuId::trusted(sku) }
}

pub(in crate::conformance) fn sku(activity: &str, name: &str, stock: i64) -> Sku {
    Sku {
        key: key(activity, name),
        price: cny(1999),
        per_user_limit: 2,
        limit_since: Timestamp(0),
        buckets: 1,
        opening: stock,
        stock: Stock::full(stock),
        adjustments: 0,
        revision: 0,
    }
}

pub(in crate::conformance) fn cny(amount: i64) -> Money {
    Money::new(amount, Currency::CNY).expect("within the limit")
}

/// A new account that was given this much.
pub(in crate::conformance) fn funded(name: &str, amount: i64) -> ChangeSet {
    let empty = Account::empty(AccountId::trusted(name), START);
    let gift = Entry {
        account: empty.id.clone(),
        number: 1,
        kind: EntryKind::Grant,
        amount,
        balance_after: amount,
        job: None,
        reference: None,
        reason: None,
        actor: Arc::from("tester"),
        at: START,
    };
    let after = Account { balance: amount, entries: 1, ..empty.clone() };
    ChangeSet {
        new_accounts: vec![empty],
        entries: vec![gift],
        accounts: vec![after],
        ..ChangeSet::default()
    }
}

/// A purchase id from a number.
pub(in crate::conformance) fn id(number: u64) -> PurchaseId {
    let mut digest = [0_u8; 16];
    digest[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    digest[10..].copy_from_slice(&number.to_be_bytes()[2..]);
    PurchaseId::from_digest(digest, 1)
}

pub(in crate::conformance) fn user(name: &str) -> UserId {
    UserId::trusted(name)
}

/// A reservation that only admission knows.
pub(in crate::conformance) fn reserved(number: u64, buyer: &str, key: &SkuKey) -> Purchase {
    let line = Line { key: key.clone(), quantity: 1, place: -1, unit_price: None };
    Purchase {
        id: id(number),
        handle: 0,
        route: Route::Flash,
        user: user(buyer),
        request: RequestId::trusted(&format!("request-{number}")),
        lines: vec![line],
        admission: Admission::Reserved,
        compensation: None,
        reservation: None,
        reason: None,
        reserved_at: START,
        business_deadline: START.plus(Millis(120_000)),
        inbox: None,
        order: None,
        updated_at: START,
        revision: 0,
    }
}

/// A direct order that holds the given place.
pub(in crate::conformance) fn ordered(number: u64, buyer: &str, key: &SkuKey, place: i64) -> Purchase {
    let mut purchase = reserved(number, buyer, key);
    purchase.route = Route::Direct;
    purchase.admission = Admission::Absent;
    purchase.lines[0].place = place;
    purchase.lines[0].unit_price = Some(cny(1999));
    purchase.order = Some(order(OrderStatus::Created));
    purchase
}

pub(in crate::conformance) fn order(status: OrderStatus) -> Order {
    let cancelled = status == OrderStatus::Cancelled;
    let paid = matches!(status, OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded);
    Order {
        status,
        total: cny(1999),
        paid: if paid { 1999 } else { 0 },
        refunded: if status == OrderStatus::Refunded { 1999 } else { 0 },
        created_at: START,
        expires_at: START.plus(Millis(900_000)),
        cancel_due_at: START.plus(Millis(960_000)),
        paid_at: paid.then_some(START),
        cancelled_at: cancelled.then_some(START),
        cancel_reason: cancelled.then(|| Arc::from("expired")),
    }
}

pub(in crate::conformance) fn inbox(result: InboxResult) -> Inbox {
    Inbox { payload_hash: [0xa5; 32], result }
}

/// The move that makes the order of a reservation.
pub(in crate::conformance) fn create_order(purchase: &Purchase, place: i64) -> PurchaseMove {
    let step = Step::CreateOrder {
        reservation: Status::OrderCreated,
        inbox: inbox(InboxResult::OrderCreated),
        order: order(OrderStatus::Created),
        place,
        unit_price: cny(1999),
    };
    step_of(purchase, step)
}

pub(in crate::conformance) fn step_of(purchase: &Purchase, step: Step) -> PurchaseMove {
    let Purchase { id, handle, revision, .. } = *purchase;
    PurchaseMove { id, handle, revision, at: START.plus(Millis(77)), step }
}

pub(in crate::conformance) fn task(purchase: PurchaseId) -> CompensationTask {
    CompensationTask {
        purchase,
        status: Compensation::Pending,
        attempts: 0,
        last_result: None,
        created_at: START,
        updated_at: START,
        revision: 0,
    }
}

pub(in crate::conformance) fn stock_move(sku: &Sku, stock: Stock) -> StockMove {
    StockMove { key: sku.key.clone(), revision: sku.revision, stock, adjustments: sku.adjustments }
}

pub(in crate::conformance) fn transition(
    purchase: PurchaseId,
    cause: &'static str,
    to: &'static str,
) -> Transition {
    Transition {
        purchase,
        at: START,
        kind: "order",
        from: Some("CREATED"),
        to,
        cause,
        actor: Arc::from("engine"),
        reference: None,
    }
}
