//! A house to test in: the real engine over the model store, with a clock that is moved by hand.
#![allow(clippy::unwrap_used, dead_code, reason = "each test binary uses its part of the house")]

pub(crate) mod circle;
pub(crate) mod line;
pub(crate) mod shop;
pub(crate) mod slow;

use std::sync::Arc;

use onceward::operations::{catalogue, operate};
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::catalogue::{Activity, LatePayment};
use onceward_domain::derive::KeyRing;
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::ports::store::Store;
use onceward_domain::purchase::Purchase;
use onceward_domain::retention::{Aged, RecordKind};
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::ModelStore;
use onceward_testkit::notifier::People;

/// Steps after which a house that is still busy counts as one that never comes to rest.
const STEPS_LIMIT: u32 = 20_000;

pub(crate) struct House {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Engine,
}

/// The rules of the usual activity; tests change what they are about.
pub(crate) fn usual_activity() -> Activity {
    Activity {
        id: ActivityId::trusted("sale"),
        name: Arc::from("Sale"),
        starts_at: Timestamp(0),
        ends_at: Timestamp(1_000_000_000),
        payment_window: Millis(900_000),
        cancel_grace: Millis(300_000),
        reservation_deadline: Millis(300_000),
        confirm_after_cancel: Millis(45_000),
        late_payment: LatePayment::Refund,
        cancelled_frees_limit: true,
    }
}

pub(crate) fn key(sku: &str) -> SkuKey {
    SkuKey { activity: ActivityId::trusted("sale"), sku: SkuId::trusted(sku) }
}

pub(crate) fn keys() -> KeyRing {
    KeyRing::new(&[(1, vec![7; 32])]).unwrap()
}

impl House {
    /// A house with one activity and one SKU `cup`.
    pub(crate) fn with(stock: i64, per_user_limit: u32, activity: Activity) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(10_000)));
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock.clone()));
        let engine = engine_over(store.clone());
        let house = Self { clock, store, engine };
        block_on(catalogue::put_activity(&house.engine, activity)).unwrap();
        house.put_sku("cup", stock, per_user_limit);
        house
    }

    pub(crate) fn new(stock: i64) -> Self {
        Self::with(stock, 1, usual_activity())
    }

    pub(crate) fn put_sku(&self, sku: &str, stock: i64, per_user_limit: u32) {
        let price = Money::new(1999, Currency::CNY).unwrap();
        let new = catalogue::NewSku { key: key(sku), stock, price, per_user_limit, buckets: 1 };
        block_on(catalogue::put_sku(&self.engine, new)).unwrap();
    }

    pub(crate) fn reserve(&self, user: &str, request: &str, quantity: u32) -> ReserveAnswer {
        self.reserve_all(&[(user, request, quantity)]).remove(0)
    }

    pub(crate) fn reserve_all(&self, buyers: &[(&str, &str, u32)]) -> Vec<ReserveAnswer> {
        let commands = buyers
            .iter()
            .map(|(user, request, quantity)| {
                let (key, user, request) = (key("cup"), UserId::trusted(user), RequestId::trusted(request));
                let purchase = self.engine.keys().reservation(&key, &user, &request);
                let older = self.engine.keys().older_reservations(&key, &user, &request);
                Reserve { purchase, older, key, user, request, quantity: *quantity }
            })
            .collect();
        block_on(self.engine.admission().reserve(commands)).unwrap()
    }

    /// How many records of a kind may go one day.
    pub(crate) fn aged(&self, kind: RecordKind) -> usize {
        block_on(self.store.aged(1_000, Aged::before_all(kind))).expect("it lists").len()
    }

    /// One step of one worker.
    pub(crate) fn step(&self, worker: Worker) -> Result<Next, Error> {
        block_on(worker.step(&self.engine))
    }

    /// Whether the worker's next step finds nothing to do. A step that fails counts as work: it comes again.
    fn sleeps(&self, worker: Worker) -> bool {
        matches!(self.step(worker), Ok(Next::Wait(_)))
    }

    /// Steps every worker until nobody has anything to do at this time.
    pub(crate) fn rest(&self) {
        for _ in 0..STEPS_LIMIT {
            let busy = Worker::ALL
                .into_iter()
                .filter(|worker| *worker != Worker::Watch)
                .filter(|worker| !self.sleeps(*worker))
                .count();
            let waits = block_on(self.store.lanes()).unwrap();
            let now = block_on(self.store.now()).unwrap();
            let is_due = waits.iter().any(|lane| {
                !lane.lane.as_str().starts_with("dead/") && lane.next_due.is_some_and(|due| due <= now)
            });
            if busy == 0 && !is_due {
                return;
            }
        }
        panic!("the house never comes to rest");
    }

    /// Lets time pass and works off what is due, in small strides so that back-offs are met.
    pub(crate) fn pass(&self, length: i64) {
        let strides = 20;
        for _ in 0..strides {
            self.clock.advance(Millis(length / strides));
            self.rest();
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        let need = Need { skus: vec![key("cup")], buckets: vec![key("cup")], ..Need::default() };
        block_on(self.store.view(need)).unwrap()
    }

    pub(crate) fn purchase(&self, id: PurchaseId) -> Option<Purchase> {
        let need = Need { purchases: vec![id], ..Need::default() };
        block_on(self.store.view(need)).unwrap().purchases.remove(&id)
    }

    pub(crate) fn id(&self, user: &str, request: &str) -> PurchaseId {
        self.engine.keys().reservation(&key("cup"), &UserId::trusted(user), &RequestId::trusted(request))
    }

    /// `(available, occupied, sold)` of the store and `(available, open_reserved, committed)` of the gate.
    pub(crate) fn figures(&self) -> ([i64; 3], [i64; 3]) {
        let facts = self.facts();
        let stock = facts.skus[&key("cup")].stock;
        let bucket = &facts.buckets[&key("cup")];
        (
            [stock.available, stock.occupied, stock.sold],
            [bucket.available, bucket.open_reserved, bucket.committed],
        )
    }

    /// Every invariant holds now.
    pub(crate) fn assert_invariants(&self) {
        for check in block_on(operate::invariants(&self.engine)).unwrap() {
            assert!(check.holds, "{}: {}", check.name, check.detail);
        }
    }

    /// How many members a lane has.
    pub(crate) fn lane(&self, name: &str) -> u64 {
        let lanes = block_on(self.store.lanes()).unwrap();
        lanes.iter().find(|one| one.lane.as_str() == name).map_or(0, |one| one.size)
    }
}

/// A second engine over the same store: another process, or the next life of a killed one.
pub(crate) fn engine_over(store: Arc<dyn Store>) -> Engine {
    engine_with(store, Arc::new(People::default()))
}

/// The same, telling these people.
pub(crate) fn engine_with(store: Arc<dyn Store>, people: Arc<People>) -> Engine {
    let ports = Ports::embedded(store, Arc::new(CountingIds::new("t"))).with_notifier(people);
    Engine::new(ports, keys(), Settings::default())
}
