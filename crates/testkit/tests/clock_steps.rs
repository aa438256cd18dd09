//! A store's clock that is set back in the middle of a step loses nothing (DR-06).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onceward::workers::Worker;
use onceward::{Engine, Ports, Settings};
use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku, Stock};
use onceward_domain::changes::ChangeSet;
use onceward_domain::derive::KeyRing;
use onceward_domain::facts::Need;
use onceward_domain::id::{ActivityId, PurchaseId, RequestId, SkuId, SkuKey, UserId};
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::admission::{Reserve, ReserveAnswer};
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::ModelStore;

const START: Timestamp = Timestamp(1_767_225_600_000);
const DEADLINE: Millis = Millis(10_000);

/// Shows `now`, until it has been read so often; then it has been set back by half a second.
struct SteppingClock {
    now: AtomicI64,
    good_reads: AtomicI64,
}

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        let is_good = self.good_reads.fetch_sub(1, Ordering::SeqCst) > 0;
        let back = if is_good { 0 } else { 500 };
        Timestamp(self.now.load(Ordering::SeqCst) - back)
    }
}

fn key() -> SkuKey {
    SkuKey { activity: ActivityId::trusted("sale"), sku: SkuId::trusted("sku") }
}

fn put_on_sale(store: &ModelStore) {
    let activity = Activity {
        id: key().activity,
        name: Arc::from("Sale"),
        starts_at: START,
        ends_at: START.plus(Millis(1_000_000)),
        payment_window: Millis(900_000),
        cancel_grace: Millis(0),
        reservation_deadline: DEADLINE,
        confirm_after_cancel: Millis(45_000),
        late_payment: LatePayment::Refund,
        cancelled_frees_limit: true,
    };
    let sku = Sku {
        key: key(),
        price: Money::zero(Currency::CNY),
        per_user_limit: 1,
        limit_since: Timestamp(0),
        buckets: 1,
        opening: 1,
        stock: Stock::full(1),
        adjustments: 0,
        revision: 0,
    };
    let changes = ChangeSet {
        activities: vec![activity],
        new_skus: vec![sku],
        new_buckets: vec![Bucket::full(key(), 1)],
        ..ChangeSet::default()
    };
    let decide = Arc::new(move |_: &mut _| Ok(changes.clone()));
    let work = Work { name: "put_on_sale", need: Need::default(), decide };
    block_on(store.transact(work)).expect("an empty store takes a sale");
}

fn reserve(engine: &Engine) -> PurchaseId {
    let (user, request) = (UserId::trusted("u"), RequestId::trusted("r"));
    let purchase = engine.keys().reservation(&key(), &user, &request);
    let command = Reserve { purchase, older: Vec::new(), key: key(), user, request, quantity: 1 };
    let answers = block_on(engine.admission().reserve(vec![command])).expect("the gate answers");
    assert!(matches!(answers[0], ReserveAnswer::Queued { .. }), "{answers:?}");
    purchase
}

fn step(engine: &Engine) {
    block_on(Worker::Deadline.step(engine)).expect("the step goes through");
}

/// Found by the simulator: the claim saw the deadline passed, the decision did not, and the entry was settled.
#[test]
fn dr_06_fs_15_a_deadline_that_is_too_early_after_a_step_back_is_looked_at_again() {
    for good_reads in 0..8 {
        let clock = Arc::new(SteppingClock {
            now: AtomicI64::new(START.0 + 500),
            good_reads: AtomicI64::new(i64::MAX),
        });
        let store = Arc::new(ModelStore::new(clock.clone()));
        put_on_sale(&store);
        let ports = Ports::store_backed(store, Arc::new(CountingIds::new("t")));
        let keys = KeyRing::new(&[(1, vec![1; 32])]).expect("one long secret");
        let engine = Engine::new(ports, keys, Settings::default());
        let purchase = reserve(&engine);
        clock.now.fetch_add(DEADLINE.0, Ordering::SeqCst);
        clock.good_reads.store(good_reads, Ordering::SeqCst);
        step(&engine);
        clock.good_reads.store(i64::MAX, Ordering::SeqCst);
        clock.now.fetch_add(60_000, Ordering::SeqCst);
        step(&engine);
        let view =
            block_on(engine.admission().find(purchase)).expect("the gate answers").expect("it is there");
        assert_eq!(view.purchase.reservation, Some(Reservation::OrderRejected), "after {good_reads} reads");
    }
}
